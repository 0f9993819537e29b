// Keeps a page up to date, and sends what people decide on it. Without this the page can be read, and reloaded by its reader.

/// Between two requests for parts that have changed.
const REFRESH_PAUSE_MS = 200;
/// When a page that found no place asks again.
const RETRY_MS = 15_000;
/// The result of a form that led to another page, which shows it.
const TOLD = "told";

const byId = (id) => document.getElementById(id);
const parts = () => [...document.querySelectorAll("[data-part]")];

// ---- what is said to the reader

function say(text, next, isBad) {
  const place = byId("said");
  const line = document.createElement("p");
  line.className = isBad ? "bad" : "good";
  line.textContent = text;
  if (next) {
    const code = document.createElement("code");
    code.textContent = next;
    line.append(" Try: ", code);
  }
  place.replaceChildren(line);
}

function showLive(text, isLive) {
  const place = byId("live");
  if (!place) return;
  place.textContent = text;
  place.dataset.is = isLive ? "live" : "still";
}

// ---- parts that have changed

/// Makes a tree what another is, and leaves alone what is the same: focus, places in lists, what is typed and unfolded.
function morph(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
    from.replaceWith(to);
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE) {
    from.nodeValue = to.nodeValue;
    return;
  }
  morphAttributes(from, to);
  morphChildren(from, to);
}

function morphAttributes(from, to) {
  const isReaders = (name) => name === "open" && from.nodeName === "DETAILS";
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !isReaders(name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && !isReaders(name)) from.setAttribute(name, value);
  }
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.dataset.key || node.id || null : null);

function morphChildren(from, to) {
  const keyed = new Map();
  for (const child of from.children) {
    const key = keyOf(child);
    if (key) keyed.set(key, child);
  }
  let place = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const key = keyOf(wanted);
    const known = key ? keyed.get(key) : place && !keyOf(place) ? place : null;
    if (known && known.nodeName === wanted.nodeName) {
      if (known === place) place = place.nextSibling;
      else from.insertBefore(known, place);
      morph(known, wanted);
    } else {
      from.insertBefore(wanted, place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

const changed = new Set();
let isRefreshing = false;

async function refresh(names) {
  names.forEach((name) => changed.add(name));
  if (isRefreshing) return;
  isRefreshing = true;
  while (changed.size > 0) {
    const wanted = [...changed];
    changed.clear();
    try {
      await fetchParts(wanted);
    } catch {
      showLive("offline", false);
    }
    await new Promise((done) => setTimeout(done, REFRESH_PAUSE_MS));
  }
  isRefreshing = false;
}

async function fetchParts(names) {
  const url = new URL(location.href);
  url.hash = "";
  url.searchParams.set("parts", names.join(","));
  const answer = await fetch(url, { headers: { accept: "text/x-parts" }, redirect: "error" });
  if (answer.status === 401) {
    stop();
    say("You are logged out.", "", true);
    return;
  }
  if (!answer.ok) return;
  const held = document.createElement("template");
  held.innerHTML = await answer.text();
  for (const part of [...held.content.children]) {
    const known = byId(part.id);
    if (known) morph(known, part);
  }
}

// ---- news

let source = null;
let since = null;

function connect() {
  const path = document.body.dataset.live;
  if (!path || source || document.hidden) return;
  const url = new URL(path, location.href);
  if (since) url.searchParams.set("since", since);
  source = new EventSource(url);
  source.addEventListener("open", () => showLive("live", true));
  source.addEventListener("changed", (event) => {
    since = event.lastEventId;
    const topics = new Set(event.data.split(" "));
    const isAbout = (part) => part.dataset.topics.split(" ").some((topic) => topics.has(topic));
    const names = parts().filter(isAbout).map((part) => part.dataset.part);
    // How many problems there are is on every page.
    if (names.length > 0 || topics.has("problems")) refresh(names.length > 0 ? names : ["none"]);
  });
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) {
      showLive("reconnecting", false);
      return;
    }
    showLive("not live", false);
    stop();
    setTimeout(connect, RETRY_MS);
  });
}

function stop() {
  source?.close();
  source = null;
}

// Browsers have few connections to one server: a page that nobody sees has none.
document.addEventListener("visibilitychange", () => (document.hidden ? stop() : connect()));

for (const part of parts()) {
  const { every, part: name } = part.dataset;
  if (every) setInterval(() => document.hidden || refresh([name]), Number(every) * 1000);
}
connect();

// ---- what people decide

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-post]");
  if (!form) return;
  event.preventDefault();
  if (!form.dataset.confirm || confirm(form.dataset.confirm)) send(form);
});

async function send(form) {
  const button = form.querySelector("button");
  button.disabled = true;
  form.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(form.dataset.post, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(Object.fromEntries(new FormData(form))),
    });
    const told = await answer.json();
    say(told.message ?? told.error, told.next, !answer.ok);
    if (answer.ok && form.dataset.then) {
      if ("tells" in form.dataset) sessionStorage.setItem(TOLD, JSON.stringify(told));
      location.assign(form.dataset.then);
      return;
    }
    if (answer.ok) form.reset();
  } catch {
    say("The server does not answer.", "hookloop serve", true);
  }
  button.disabled = false;
  form.removeAttribute("aria-busy");
  refresh(parts().map((part) => part.dataset.part));
}

const kept = sessionStorage.getItem(TOLD);
if (kept) {
  sessionStorage.removeItem(TOLD);
  const { message, next } = JSON.parse(kept);
  say(message, next, false);
}
