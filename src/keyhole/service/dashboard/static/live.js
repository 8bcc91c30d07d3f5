"use strict";

// Keeps a ranker's page up to date: the stream says that something happened, the page's JSON says
// what. Texts go in as textContent and numbers as attributes, so that a name is never markup.
(() => {
  const head = document.getElementById("live");
  const connection = document.getElementById("connection");
  const announcer = document.getElementById("announcer");
  const RETRY_MS = 2000;
  const SILENCE_MS = 3000 * head.dataset.beat; // Three beats missed are a loss.
  const ANNOUNCE_MS = 15000; // Numbers are read aloud seldom; they change twice a second.

  function fill(part, row) {
    for (const cell of part.querySelectorAll("[data-cell]")) cell.textContent = row[cell.dataset.cell];
    for (const titled of [part, ...part.querySelectorAll("[data-title]")]) {
      if (titled.dataset.title) titled.title = row[titled.dataset.title];
    }
    for (const shape of part.querySelectorAll("[data-at]")) {
      for (const pair of shape.dataset.at.split(" ")) {
        const [attribute, name] = pair.split(":");
        shape.setAttribute(attribute, row[name]);
      }
    }
    for (const mark of part.querySelectorAll("[data-show]")) mark.hidden = !row[mark.dataset.show];
    for (const flag of (part.dataset.flag ?? "").split(" ").filter(Boolean)) part.toggleAttribute(`data-${flag}`, row[flag]);
    if (part.dataset.cell) part.textContent = row[part.dataset.cell];
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
    keyholeCharts.all(page.charts);
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
  async function refresh() {
    wanted = true;
    if (busy) return;
    busy = true;
    try {
      while (wanted) {
        wanted = false;
        const answer = await fetch(head.dataset.json, { headers: { accept: "application/json" } });
        if (!answer.ok) throw new Error(String(answer.status));
        show((await answer.json()).page);
      }
    } catch {
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
    source = new EventSource(head.dataset.stream);
    heard = Date.now();
    const hear = () => {
      heard = Date.now();
      say("live", "Live");
    };
    source.addEventListener("open", hear);
    source.addEventListener("beat", hear);
    source.addEventListener("message", () => {
      hear();
      refresh();
    });
    source.addEventListener("error", () => {
      say("lost", "Connection lost, trying again");
      // The browser tries again by itself, except after an answer that was not a stream.
      if (source.readyState === EventSource.CLOSED) again = setTimeout(connect, RETRY_MS);
    });
  }

  setInterval(() => {
    if (source && Date.now() - heard > SILENCE_MS) connect();
  }, RETRY_MS);
  refresh();
  connect();
})();
