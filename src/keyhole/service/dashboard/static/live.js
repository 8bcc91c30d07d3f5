"use strict";

// Keeps a page up to date: the stream says that something happened, the page's JSON says what; a
// page without a stream is read again now and then. Texts go in as textContent and numbers as attributes, so that a name is never markup.
(() => {
  const head = document.getElementById("live");
  const connection = document.getElementById("connection");
  const announcer = document.getElementById("announcer");
  const RETRY_MS = 2000;
  const SILENCE_MS = 3000 * head.dataset.beat; // Three beats missed are a loss.
  const POLL_MS = 5000;
  const ANNOUNCE_MS = 15000; // Numbers are read aloud seldom; they change twice a second.

  const marked = (part, mark) => [part, ...part.querySelectorAll("*")].filter((each) => mark in each.dataset);

  function fill(part, row) {
    for (const cell of marked(part, "cell")) cell.textContent = row[cell.dataset.cell];
    for (const titled of marked(part, "title")) titled.title = row[titled.dataset.title];
    for (const mark of marked(part, "show")) mark.hidden = !row[mark.dataset.show];
    for (const shape of marked(part, "at")) {
      for (const pair of shape.dataset.at.split(" ")) {
        const [attribute, name] = pair.split(":");
        shape.setAttribute(attribute, row[name]);
      }
    }
    for (const flagged of marked(part, "flag")) {
      for (const flag of flagged.dataset.flag.split(" ")) flagged.toggleAttribute(`data-${flag}`, row[flag]);
    }
  }

  const last = new Map();

  function fillRows(name, rows) {
    const said = JSON.stringify(rows);
    const place = document.querySelector(`[data-rows="${name}"]`);
    const pattern = document.querySelector(`template[data-pattern="${name}"]`);
    if (!place || last.get(name) === said) return;
    last.set(name, said);
    while (place.children.length > rows.length) place.lastElementChild.remove();
    while (place.children.length < rows.length) {
      place.append(pattern.content.firstElementChild.cloneNode(true));
    }
    rows.forEach((row, i) => fill(place.children[i], row));
  }

  function show(page) {
    for (const place of document.querySelectorAll("[data-text]")) {
      const text = page.texts[place.dataset.text];
      if (place.textContent !== text) place.textContent = text;
    }
    for (const place of document.querySelectorAll("[data-if]")) place.hidden = !page.flags[place.dataset.if];
    for (const place of document.querySelectorAll("[data-aria]")) {
      place.setAttribute("aria-label", page.texts[place.dataset.aria]);
    }
    for (const [name, rows] of Object.entries(page.rows)) fillRows(name, rows);
    if (page.charts) keyholeCharts.all(page.charts);
    announce(page.texts.live);
  }

  let announced = 0;
  function announce(text) {
    if (Date.now() - announced < ANNOUNCE_MS) return;
    announced = Date.now();
    announcer.textContent = text;
  }

  function say(state, text) {
    head.dataset.state = state;
    if (connection.textContent !== text) connection.textContent = text;
  }

  let busy = false;
  let wanted = false;
  let isStale = false;
  async function refresh() {
    wanted = true;
    if (busy) return;
    busy = true;
    try {
      while (wanted) {
        wanted = false;
        const answer = await fetch(head.dataset.json, { headers: { accept: "application/json" } });
        if (answer.status === 401) location.reload(); // The session has ended: the server asks for a key.
        if (!answer.ok) throw new Error(String(answer.status));
        show((await answer.json()).page);
        if (!head.dataset.stream) say("live", "Live");
      }
      isStale = false;
    } catch {
      isStale = true;
      say("lost", "Connection lost, trying again");
    } finally {
      busy = false;
    }
  }

  let source = null;
  let heard = 0;
  let again = 0;
  function connect() {
    clearTimeout(again);
    source?.close();
    const opened = new EventSource(head.dataset.stream);
    const hear = () => {
      heard = Date.now();
      say("live", "Live");
      if (isStale) refresh();
    };
    opened.addEventListener("open", hear);
    opened.addEventListener("beat", hear);
    opened.addEventListener("message", () => {
      hear();
      refresh();
    });
    opened.addEventListener("error", () => {
      say("lost", "Connection lost, trying again");
      // The browser tries again by itself, except after an answer that was not a stream.
      if (opened.readyState === EventSource.CLOSED) again = setTimeout(connect, RETRY_MS);
    });
    source = opened;
    heard = Date.now();
  }

  // A browser opens few connections to one server, and a stream holds one: a page that nobody
  // looks at lets go of it.
  function follow() {
    if (document.hidden) {
      clearTimeout(again);
      source?.close();
      source = null;
      return;
    }
    refresh();
    if (head.dataset.stream) connect();
  }

  follow();
  document.addEventListener("visibilitychange", follow);
  if (head.dataset.stream) {
    setInterval(() => source && Date.now() - heard > SILENCE_MS && connect(), RETRY_MS);
  } else {
    setInterval(() => document.hidden || refresh(), POLL_MS);
  }
})();
