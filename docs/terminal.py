"""Terminals that are recorded: a real one (tmux) that is typed into, and what was on it as a picture or as a film, both SVG.
Used by docs/record, docs/record-screens and docs/record-first-run, which need tmux and bash."""
import dataclasses, html, os, re, shutil, subprocess, sys, tempfile, time

# How long anything on a terminal is waited for, unless something else is said, in seconds.
SEE_MAX = 20
# How long the terminal has to show a key that was pressed.
ECHO_MAX = 5
# How long tmux has to do what it is told.
TELL_MAX = 30
# Between two looks at it.
POLL = 0.02
# What is drawn right after the awaited text belongs to the picture.
SETTLE = 0.3
# What follows an escape at once would be taken for a key with alt.
ESCAPE = 0.2

LINE, CHAR, MARGIN, ASCENT = 19, 8.4, 16, 14
PAPER, INK = "#0d1117", "#e6edf3"
RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN = "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea"
# As ANSI numbers them, ordinary and bright; black, white and what has no name are as the rest of the text.
COLOURS = {first + number: colour for first in (30, 90)
           for number, colour in enumerate((RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN), 1)}
# With colours, and with the spaces at the end of a row, which may have a ground.
PICTURE = ("capture-pane", "-e", "-p", "-N")
STYLE = r"\x1b\[[0-9;]*m"
STYLES = {1: "bold", 2: "dim", 7: "reverse"}
ENDS = {22: ("bold", "dim"), 27: ("reverse",), 39: ("fill",)}
# Grounds side by side have no seam.
CRISP = 'shape-rendering="crispEdges"'
# Browsers make one of several spaces, whatever they are told.
NBSP = "\u00a0"

# A film's last frame is shown for so long before it begins again, in seconds.
FILM_REST = 6

PROMPT = "$"
# The shell that is typed into: a prompt in green, what is typed in bold, an empty line between commands, and the exit status
# of each in a file that nobody sees.
SHELL = r"""
PS1='\[\e[32m\]$\[\e[0m\] \[\e[1m\]' PS0='\e[0m'
prompting() {
  echo $? >> 'STATUSES'
  [ -z "${prompted:-}" ] || echo
  prompted=1
}
PROMPT_COMMAND=prompting
unset HISTFILE
"""
OPTIONS = "set -g status off\nset -g default-terminal tmux-256color\nset -g escape-time 0\nset -g history-limit 10000\n"


@dataclasses.dataclass(frozen=True)
class Look:
    """What is on the terminal: its rows with their colours, where the cursor is, if it shows, and whether a program has all of
    it for itself."""
    rows: tuple
    cursor: tuple | None
    is_screen: bool

    def is_at_prompt(self):
        return self.cursor is not None and plain(self.rows[self.cursor[1]]).rstrip() == PROMPT


class Terminal:
    """A shell in tmux, in a directory, with no other variables than those given."""

    def __init__(self, directory, env, columns, lines):
        self.columns, self.lines, self.directory = columns, lines, directory
        self.own = tempfile.TemporaryDirectory(prefix="tmux-", ignore_cleanup_errors=True)
        self.env = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "SHELL": shutil.which("bash"), **env}
        options, start = self.file("options"), self.file("start")
        with open(options, "w") as out:
            out.write(OPTIONS)
        with open(start, "w") as out:
            out.write(SHELL.replace("STATUSES", self.file("statuses")))
        self.tell("-f", options, "new-session", "-d", "-x", str(columns), "-y", str(lines), "bash", "--rcfile", start, "-i")
        try:
            self.await_prompt(1)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def file(self, name):
        return os.path.join(self.own.name, name)

    def tell(self, *args):
        command = ["tmux", "-u", "-S", self.file("socket"), *args]
        options = {"cwd": self.directory, "env": self.env, "timeout": TELL_MAX, "check": True}
        return subprocess.run(command, stdout=subprocess.PIPE, **options).stdout.decode()

    def keys(self, *keys):
        self.tell("send-keys", *keys)

    def escape(self):
        self.keys("Escape")
        time.sleep(ESCAPE)

    def type(self, text):
        # Else tmux would take a semicolon for the end of its command.
        self.tell("send-keys", "-l", "--", re.sub(r";$", r"\\;", text))

    def press_each(self, text):
        """Types a text key by key, and answers with what the terminal shows after each of them."""
        before = self.look()
        for character in text:
            end = time.monotonic() + ECHO_MAX
            self.type(character)
            while (now := self.look()).cursor == before.cursor:
                if time.monotonic() > end:
                    self.fail(f"`{character}` was typed and did not appear")
            before = now
            yield now

    def look(self):
        about = "#{cursor_x} #{cursor_y} #{cursor_flag} #{alternate_on}"
        told = self.tell("display-message", "-p", about, ";", *PICTURE)
        place, *rows = told.split("\n")
        x, y, shows, is_screen = (int(number) for number in place.split())
        return Look(tuple(rows[:self.lines]), (x, y) if shows else None, bool(is_screen))

    def text(self):
        """What is on it without colours."""
        return self.tell("capture-pane", "-p")

    def scrolled(self):
        """The same with everything that was there before; what was wrapped is one line."""
        return self.tell("capture-pane", "-p", "-J", "-S", "-")

    def picture(self):
        """The rows with their colours, without empty ones at the end."""
        rows = list(self.look().rows)
        while rows and not plain(rows[-1]).strip():
            rows.pop()
        return rows

    def see(self, text, seconds=SEE_MAX):
        end = time.monotonic() + seconds
        while text not in self.text():
            if time.monotonic() > end:
                self.fail(f"`{text}` did not appear")
            time.sleep(POLL)
        time.sleep(SETTLE)

    def statuses(self):
        """How each command ended, so far; the first is how the shell began."""
        try:
            with open(self.file("statuses")) as file:
                return [int(line) for line in file]
        except FileNotFoundError:
            return []

    def await_prompt(self, number, seconds=SEE_MAX, meanwhile=lambda look: None):
        """Waits for the prompt with this number, the first of which is 1; answers how the command before it ended."""
        end = time.monotonic() + seconds
        while True:
            look, statuses = self.look(), self.statuses()
            meanwhile(look)
            if len(statuses) >= number and look.is_at_prompt():
                return statuses[number - 1]
            if time.monotonic() > end:
                self.fail(f"no prompt after {seconds} s")
            time.sleep(POLL)

    def run(self, command):
        """Types a command that has to work, and waits for its end."""
        number = len(self.statuses()) + 1
        self.type(command)
        self.keys("Enter")
        status = self.await_prompt(number)
        if status != 0:
            self.fail(f"`{command}` ended with {status}")

    def fail(self, what):
        sys.exit(f"{what}:\n{self.text()}")

    def close(self):
        subprocess.run(["tmux", "-S", self.file("socket"), "kill-server"], env=self.env, timeout=TELL_MAX)
        self.own.cleanup()


def plain(row):
    return re.sub(STYLE, "", row)


def styled(rows):
    """Each row as pieces of text with their style. A style lasts beyond its row."""
    style = {}
    for row in rows:
        pieces = []
        for part in re.split(f"({STYLE})", row):
            if part.startswith("\x1b["):
                style = change(style, [int(code or 0) for code in part[2:-1].split(";")])
            elif part:
                pieces.append((part, style))
        yield pieces


def change(style, codes):
    style, codes = dict(style), list(codes)
    while codes:
        code = codes.pop(0)
        if code in (38, 48):
            code, codes = named(code, codes)
        if code == 0:
            style = {}
        elif code in STYLES:
            style[STYLES[code]] = True
        elif code in COLOURS:
            style["fill"] = COLOURS[code]
        for name in ENDS.get(code, ()):
            style.pop(name, None)
    return style


def named(code, codes):
    """The code of a colour that was said by number, and the codes that are left. Sixteen of the 256 have names; the rest, and
    grounds, are as the text around them."""
    if codes[:1] == [5]:
        number, rest = codes[1], codes[2:]
        return (30 + number if number < 8 else 82 + number) if code == 38 and number < 16 else None, rest
    return None, codes[4:]


def attributes(style):
    fill = PAPER if style.get("reverse") else style.get("fill")
    yield f' fill="{fill}"' if fill else ""
    yield ' font-weight="bold"' if style.get("bold") else ""
    yield ' opacity=".55"' if style.get("dim") and not style.get("reverse") else ""


def drawn(pieces, row, column=0, name=""):
    """The SVG of a part of a row, which begins at a column."""
    top, grounds, texts = MARGIN + LINE * row, "", []
    for part, style in pieces:
        # Each piece has its place: fonts differ in how wide a sign is.
        left = f' x="{tidy(MARGIN + column * CHAR)}"'
        if style.get("reverse"):
            width = tidy(len(part) * CHAR)
            grounds += f'<rect{name}{left} y="{top}" width="{width}" height="{LINE}" fill="{INK}" {CRISP}/>\n'
        shown = html.escape(part, quote=False).replace(" ", NBSP)
        texts.append((left + "".join(attributes(style)), shown))
        column += len(part)
    if len(texts) == 1:
        how, text = texts[0]
    else:
        how, text = "", "".join(f"<tspan{how}>{shown}</tspan>" for how, shown in texts)
    return grounds + (f'<text{name}{how} y="{top + ASCENT}">{text}</text>\n' if text else "")


def tidy(number):
    return f"{number:.1f}".removesuffix(".0")


def sheet(columns, lines, inside):
    width, height = int(columns * CHAR) + 2 * MARGIN, lines * LINE + 2 * MARGIN
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
            f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>\n'
            f'<g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14" fill="{INK}" xml:space="preserve">\n'
            f'{inside}</g>\n</svg>\n')


def draw(rows, columns, path):
    """Writes a picture of rows."""
    inside = "".join(drawn(joined(cells(pieces)), number) for number, pieces in enumerate(styled(rows)))
    with open(path, "w") as out:
        out.write(sheet(columns, len(rows), inside))


class Film:
    """What a terminal showed, each look at its moment: the film's own time, in seconds."""

    def __init__(self):
        self.now, self.looks = 0.0, []

    def hold(self, seconds):
        """What is there stays for a while."""
        self.now += seconds

    def take(self, look):
        if not self.looks or self.looks[-1][1] != look:
            self.looks.append((self.now, look))

    def write(self, columns, lines, path):
        """One SVG without a program in it. What is drawn is a text with the time at which it shows; where nothing moves, or
        nothing should, the last frame is seen."""
        end = self.now + FILM_REST
        rules, past, last = Rules(end), [], []
        for piece in self.pieces(lines, end):
            name = f' class="{rules.during(piece.start, piece.end)}"' if (piece.start, piece.end) != (0, end) else ""
            (last if piece.end == end else past).append(drawn(piece.text, piece.row, piece.column, name))
        last.append(self.cursor(rules))
        inside = f'<style>{rules}</style>\n<g visibility="hidden">\n{"".join(past)}</g>\n{"".join(last)}'
        with open(path, "w") as out:
            out.write(sheet(columns, lines, inside))

    def pieces(self, lines, end):
        frames = [(at, [cells(row) for row in styled(look.rows)]) for at, look in self.looks]
        for row in range(lines):
            shown, open_ = [], []
            for at, rows in frames:
                new = rows[row] if row < len(rows) else []
                if new == shown:
                    continue
                # What was typed after what was there is drawn alone.
                kept = len(shown) if new[:len(shown)] == shown else 0
                if kept == 0:
                    yield from (dataclasses.replace(piece, end=at) for piece in open_)
                    open_ = []
                if new[kept:]:
                    open_.append(Piece(row, kept, joined(new[kept:]), at, end))
                shown = new
            yield from open_

    def cursor(self, rules):
        places = [(at, look.cursor) for at, look in self.looks]
        rect = f'<rect class="{rules.moves(places)}" width="{CHAR}" height="{LINE}" fill="{INK}" opacity=".6"'
        return rect + (f' transform="translate({corner(places[-1][1])})"/>\n' if places[-1][1] else ' visibility="hidden"/>\n')


@dataclasses.dataclass
class Piece:
    row: int
    column: int
    text: list
    start: float
    end: float


class Rules:
    """The style sheet of a film: what shows when, each time once."""

    def __init__(self, end):
        self.end, self.names, self.frames, self.classes = end, {}, [], []

    def percent(self, at):
        return f"{100 * at / self.end:.2f}".rstrip("0").rstrip(".") + "%"

    def during(self, start, end):
        name = self.names.get((start, end))
        if name is None:
            name = self.names[(start, end)] = f"t{len(self.names)}"
            steps = "0%{visibility:hidden}" if start > 0 else ""
            steps += f"{self.percent(start)}{{visibility:visible}}"
            steps += f"{self.percent(end)}{{visibility:hidden}}" if end < self.end else ""
            self.add(name, steps)
        return name

    def moves(self, places):
        steps, before, did_show = "", None, None
        for at, place in places:
            how = [f"transform:translate({corner(place, 'px')})"] if place and place != before else []
            how += ["visibility:" + ("visible" if place else "hidden")] if bool(place) != did_show else []
            if how:
                steps += f"{self.percent(at)}{{{';'.join(how)}}}"
            before, did_show = place or before, bool(place)
        self.add("cursor", steps)
        return "cursor"

    def add(self, name, steps):
        self.frames.append(f"@keyframes {name}{{{steps}}}")
        self.classes.append(f".{name}{{animation-name:{name}}}")

    def __str__(self):
        play = f"text,rect{{animation:{self.end:.2f}s step-end infinite}}"
        moving = "\n".join([play, *self.classes])
        return "\n" + "\n".join(self.frames) + f"\n@media (prefers-reduced-motion:no-preference){{\n{moving}\n}}\n"


def corner(place, unit=""):
    x, y = place
    return f"{tidy(MARGIN + x * CHAR)}{unit},{MARGIN + y * LINE}{unit}"


def cells(pieces):
    """A row as single characters with their styles, without what does not show at its end."""
    found = [(character, style) for text, style in pieces for character in text]
    while found and found[-1][0] == " " and not found[-1][1].get("reverse"):
        found.pop()
    return found


def joined(cells):
    """Characters of one style as one piece again."""
    pieces = []
    for character, style in cells:
        if pieces and pieces[-1][1] == style:
            pieces[-1] = (pieces[-1][0] + character, style)
        else:
            pieces.append((character, style))
    return pieces
