//! The ways in which programs use their arguments, as far as they matter to a value among them.

mod table;

use table::{Interpreter, ProgramKind, Wrapper};

use super::error::{CommandLineError, Unsafe};
use super::place::{ValuePlace, refused};
use super::word::{CommandWord, WordPiece};

/// A place that can't hold a value.
#[derive(Debug)]
pub(super) struct RefusedPlace {
    pub(super) place: ValuePlace,
    pub(super) why: Unsafe,
}

impl From<RefusedPlace> for CommandLineError {
    fn from(RefusedPlace { place, why }: RefusedPlace) -> CommandLineError {
        refused(&place, why)
    }
}

/// Checks the places of one command. `targets` are the files to which it is redirected.
pub(super) fn check(words: &[CommandWord], targets: &[CommandWord]) -> Result<(), RefusedPlace> {
    let Some(command) = words.first() else { return Ok(()) };
    let Some(place) = words.iter().chain(targets).flat_map(CommandWord::places).next() else {
        return Ok(());
    };
    let refuse = |why| Err(RefusedPlace { place: place.clone(), why });
    if command.has_place() {
        return refuse(part_of_command(command));
    }
    let name = match command.program() {
        Some(name) if !name.is_empty() && !name.starts_with('-') => name,
        _ => return refuse(Unsafe::UnknownCommand),
    };
    let parsed = || Unsafe::Parsed { by: name.to_owned() };
    let is_safe = match table::kind(name) {
        ProgramKind::Parses { .. } => false,
        ProgramKind::Interprets(interpreter) => script(words, interpreter).is_some(),
        ProgramKind::Wraps(wrapper) => match wrapped(words, wrapper) {
            Ok(at) => return check_wrapped(words, at, targets),
            Err(UnreadOptions) => false,
        },
        ProgramKind::Finds => return check_find(words),
        ProgramKind::Declares => return check_assignments(&words[1..]),
        ProgramKind::Tests => tests_safely(words),
        ProgramKind::Formats => formats_safely(words),
        ProgramKind::Sets => words.get(1).is_some_and(|word| word.literal() == Some("--")),
        ProgramKind::Plain => match passes_code(words) {
            Some(by) => return refuse(Unsafe::Parsed { by: by.to_owned() }),
            None => true,
        },
    };
    if is_safe { Ok(()) } else { refuse(parsed()) }
}

fn part_of_command(word: &CommandWord) -> Unsafe {
    let assigns = |piece: &WordPiece| matches!(piece, WordPiece::Text(text) if text.contains('='));
    match word.pieces.iter().any(assigns) {
        true => Unsafe::AssignmentName,
        false => Unsafe::CommandWord,
    }
}

/// Checks `name=value` words, in front of a command or on their own.
pub(super) fn check_assignments(words: &[CommandWord]) -> Result<(), RefusedPlace> {
    for word in words {
        let Some(place) = word.places().next().cloned() else { continue };
        let why = match &word.assigned {
            None => Unsafe::AssignmentName,
            Some(name) if table::decides_what_runs(name) => Unsafe::Assignment(name.clone()),
            Some(_) => continue,
        };
        return Err(RefusedPlace { place, why });
    }
    Ok(())
}

/// Whether the shell would evaluate later assignments as arithmetic or as names.
pub(super) fn declares_types(words: &[CommandWord]) -> bool {
    let declares = |name| matches!(name, "declare" | "typeset" | "local" | "integer");
    words.first().and_then(CommandWord::program).is_some_and(declares)
        && words.iter().any(|word| word.literal().is_some_and(|text| text.starts_with(['-', '+'])))
}

/// Returns the program that executes its piped input as code, if this command is one.
pub(super) fn runs_its_input(words: &[CommandWord]) -> Option<String> {
    let name = words.first()?.program()?;
    let runs = match table::kind(name) {
        ProgramKind::Parses { input } => input,
        ProgramKind::Interprets(interpreter) => {
            let has_code = words.get(1).is_some_and(|option| takes_code(option, interpreter));
            !has_code && script(words, interpreter).is_none()
        }
        ProgramKind::Wraps(wrapper) => match wrapped(words, wrapper) {
            // `xargs` makes arguments of its input.
            Ok(_) if name == "xargs" => true,
            Ok(at) => return runs_its_input(&words[at..]),
            Err(UnreadOptions) => true,
        },
        _ => false,
    };
    runs.then(|| name.to_owned())
}

/// Returns the variables whose value begins a word that the program could parse as an option.
pub(super) fn unguarded(words: &[CommandWord]) -> Vec<&'static str> {
    if words.first().and_then(CommandWord::program).is_some_and(table::takes_no_options) {
        return Vec::new();
    }
    let open = words.iter().take_while(|word| word.literal() != Some("--"));
    open.filter_map(CommandWord::leading_place).map(|place| place.name).collect()
}

/// Returns the position of an interpreter's script, if it certainly runs one: a file that the author named,
/// before any value.
fn script(words: &[CommandWord], interpreter: &Interpreter) -> Option<usize> {
    for (at, word) in words.iter().enumerate().skip(1) {
        if word.has_place() {
            return None;
        }
        if word.is_operand() {
            let is_code = |text: &str| text == "eval" || text.starts_with("/dev/");
            return (!word.literal().is_some_and(is_code)).then_some(at);
        }
        let flags = word.literal()?.strip_prefix('-')?;
        if let Some(before) = flags.strip_suffix('m').filter(|_| interpreter.has_modules) {
            let named = words.get(at + 1).is_some_and(|module| module.literal().is_some());
            return (only(before, interpreter.flags) && named).then_some(at + 1);
        }
        if flags.is_empty() || !only(flags, interpreter.flags) {
            return None;
        }
    }
    None
}

fn only(flags: &str, allowed: &str) -> bool {
    flags.chars().all(|flag| allowed.contains(flag))
}

/// The error for a wrapper with unknown options.
struct UnreadOptions;

/// Returns the position of the command that a wrapper runs, or past the last word if there is none.
fn wrapped(words: &[CommandWord], wrapper: &Wrapper) -> Result<usize, UnreadOptions> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(WordPiece::Text(text)) = word.pieces.first() else { break };
        if word.assigned.is_some() && wrapper.assigns {
            at += 1;
            continue;
        }
        let Some(flags) = text.strip_prefix('-').filter(|flags| !flags.is_empty()) else { break };
        match flags.strip_prefix('-') {
            Some("") => {
                at += 1;
                break;
            }
            Some(long) if long.contains('=') || wrapper.long.contains(&long) => at += 1,
            None if word.literal().is_some() => at += short_options(flags, wrapper)?,
            _ => return Err(UnreadOptions),
        }
    }
    let assigns = |word: &CommandWord| wrapper.assigns && word.assigned.is_some();
    while words.get(at).is_some_and(assigns) {
        at += 1;
    }
    Ok((at + wrapper.operands).min(words.len()))
}

/// Returns the number of words in a group of short options.
fn short_options(flags: &str, wrapper: &Wrapper) -> Result<usize, UnreadOptions> {
    for (index, flag) in flags.char_indices() {
        if wrapper.valued.contains(flag) {
            let is_last = index + flag.len_utf8() == flags.len();
            return Ok(if is_last { 2 } else { 1 });
        }
        if !wrapper.flags.contains(flag) {
            return Err(UnreadOptions);
        }
    }
    Ok(1)
}

fn check_wrapped(
    words: &[CommandWord],
    at: usize,
    targets: &[CommandWord],
) -> Result<(), RefusedPlace> {
    let (own, command) = words.split_at(at);
    let (assignments, options): (Vec<CommandWord>, Vec<CommandWord>) =
        own.iter().cloned().partition(|word| word.assigned.is_some());
    check_assignments(&assignments)?;
    if let Some(place) = options.iter().flat_map(CommandWord::places).next() {
        return Err(RefusedPlace { place: place.clone(), why: Unsafe::CommandWord });
    }
    check(command, targets)
}

/// Checks `find`, which runs the command after `-exec` and similar options.
fn check_find(words: &[CommandWord]) -> Result<(), RefusedPlace> {
    const RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
    for (at, word) in words.iter().enumerate() {
        if word.literal().is_some_and(|text| RUNS.contains(&text)) {
            check(&words[at + 1..], &[])?;
        }
    }
    Ok(())
}

/// Whether a `test` command evaluates no value.
///
/// Shells evaluate numbers in comparisons, and bash evaluates the words after `-v` and `-R`.
fn tests_safely(words: &[CommandWord]) -> bool {
    const EVALUATES: [&str; 8] = ["-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
    let evaluates =
        |word: &CommandWord| word.literal().is_some_and(|text| EVALUATES.contains(&text));
    let risky =
        |pair: &[CommandWord]| pair[0].leading_place().is_some() && pair[1].literal().is_none();
    !words.iter().any(evaluates) && !words.windows(2).any(risky)
}

/// Whether a format is safe: the author wrote it, it takes no numbers, and it is no option.
///
/// ksh evaluates numbers, and bash's `-v` evaluates the next word.
fn formats_safely(words: &[CommandWord]) -> bool {
    let format = match words.get(1).and_then(CommandWord::literal) {
        Some("--") => words.get(2).and_then(CommandWord::literal),
        Some(text) if text.starts_with('-') => None,
        format => format,
    };
    let Some(format) = format else { return false };
    let width = |c: char| c.is_ascii_digit() || c == '-' || c == '.';
    let formats = format.replace("%%", "");
    let mut formats = formats.split('%').skip(1);
    formats.all(|format| format.trim_start_matches(width).starts_with(['s', 'b', 'q', 'c']))
}

/// Returns the command that executes a value as code, such as `docker exec box sh -c …`, `git rebase --exec …`,
/// `uv run …`.
fn passes_code(words: &[CommandWord]) -> Option<&str> {
    let attached = words.iter().filter(|word| word.has_place()).find_map(|word| {
        let option = word.before_equals()?;
        table::option_takes_code(option).then_some(option)
    });
    let following = words.windows(2).skip(1).find_map(|pair| {
        let (before, word) = (pair[0].literal().or(pair[0].program())?, &pair[1]);
        if word.has_place() && table::option_takes_code(before) {
            return Some(before);
        }
        if word.leading_place().is_some() && matches!(before, "run" | "foreach") {
            return Some(before);
        }
        let ProgramKind::Interprets(interpreter) = table::kind(pair[0].program()?) else {
            return None;
        };
        takes_code(word, interpreter).then_some(before)
    });
    attached.or(following)
}

/// Whether an option of an interpreter is followed by code.
fn takes_code(option: &CommandWord, interpreter: &Interpreter) -> bool {
    let Some(flags) = option.literal().and_then(|text| text.strip_prefix('-')) else {
        return false;
    };
    match flags.strip_prefix('-') {
        Some(long) => ["eval", "print", "command"].iter().any(|code| long.starts_with(code)),
        None => flags.contains(|flag| interpreter.code.contains(flag)),
    }
}
