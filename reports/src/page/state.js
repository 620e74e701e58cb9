// What the page knows from the beginning; and what it shows, which stands in its address, so that
// every state has a link.

const data = JSON.parse(find("#data").textContent);

const read = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

let state = read();

// The address with some parts changed; `null` takes a part away.
function link(changes) {
  const all = { ...state, ...changes };
  const parts = Object.entries(all).filter(([, v]) => v != null && v !== "" && v !== false);
  return `#${new URLSearchParams(parts)}`;
}

// Goes there: as a step that "back" undoes, or in place of this one.
function go(changes, inPlace = false) {
  const address = link(changes);
  // Not `location.hash`, whose event comes later: what was chosen would be shown after a delay.
  history[inPlace ? "replaceState" : "pushState"](null, "", address);
  arrive();
}

// A session is left with everything that was chosen in it.
const OF_SESSION = { session: null, strategy: null, against: null, compaction: null };
