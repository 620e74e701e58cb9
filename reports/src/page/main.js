// What is shown for the address.

// Headings of a table that sorts its rows.
function sortable(all) {
  const body = all.tBodies[0];
  [...all.tHead.rows[0].cells].forEach((head, i) => {
    if (head.localName !== "th") return;
    const texts = [...head.childNodes];
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const key = (row) => row.cells[i].dataset.v ?? row.cells[i].textContent.trim();
      const by = (x, y) => {
        const [p, q] = [key(x), key(y)];
        if (p === "" || q === "") return (p === "") - (q === "");
        const n = row0(p, q);
        return down ? -n : n;
      };
      const row0 = (p, q) => (Number.isNaN(p - q) ? p.localeCompare(q) : p - q);
      body.append(...[...body.rows].sort(by));
      all.querySelectorAll("[aria-sort]").forEach((th) => th.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    };
    head.replaceChildren(h("button", { type: "button", onclick: sort }, texts));
  });
}

// Puts parts in a place and gives the focus back to what had it.
function put(place, ...parts) {
  const focused = document.activeElement?.id;
  const inside = focused && place.contains(document.activeElement);
  place.replaceChildren(...parts.flat(Infinity).filter((p) => p));
  if (inside) document.getElementById(focused)?.focus({ preventScroll: true });
}

// What the address asks for and the page does not have.
function missing(block) {
  const named = (what, name) => hint(`There is no ${what} “${name}” here.`);
  if (!block) return state.session ? named("session", state.session) : "";
  return ["strategy", "against"].filter((key) => state[key] && !rowOf(block, state[key]))
    .map((key) => named("strategy", state[key]));
}

let before = {};

async function arrive() {
  state = read();
  note.hidden = true;
  const block = blockNow();
  const was = before;
  before = state;
  find("#overview").hidden = Boolean(block);
  find("#session").hidden = !block;
  put(find("#missing"), missing(block));
  if (!block) {
    // What is typed in stays as it is.
    const typing = ["search", "number"].includes(document.activeElement?.type);
    if (!typing) {
      put(find("#controls"), heatControls());
      put(find("#lose-control"), loseControl());
    }
    put(find("#answers"), answers());
    put(find("#map"), heatMap());
    if (was.session) find("#sessions").focus();
    return;
  }
  const parts = await sessionView(block);
  if (state !== before) return;
  put(find("#session"), parts);
  if (was.session !== state.session) {
    scrollTo(0, 0);
    find("#name").focus({ preventScroll: true });
  }
  if (state.compaction && was.compaction !== state.compaction) {
    find("#compaction").focus();
    find("#compaction").scrollIntoView({ block: "start" });
  }
}

// The results have no date, so that equal runs are equal.
const written = new Date(document.lastModified).toISOString().slice(0, 10);
find("main > .terms").append(` · written ${written}`);
document.body.append(note);
document.querySelectorAll("table.sort").forEach(sortable);
addEventListener("hashchange", arrive);
addEventListener("keydown", (e) => { if (e.key === "Escape") note.hidden = true; });
arrive();
