// Elements of the page. Texts become text nodes, never markup: keys and labels are any bytes.

export const $ = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Changes a text only if it differs: nothing is selected or announced anew.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Makes the children of `list` one per item. An item keeps its element, and so the focus.
export function sync(list, items, idOf, make, update) {
  const before = new Map([...list.children].map((child) => [child.dataset.id, child]));
  let place = list.firstElementChild;
  for (const [at, item] of items.entries()) {
    const id = idOf(item);
    let child = before.get(id);
    if (!child) {
      child = make(item);
      child.dataset.id = id;
    }
    before.delete(id);
    update(child, item, at);
    if (child === place) place = place.nextElementSibling;
    else list.insertBefore(child, place);
  }
  for (const child of before.values()) child.remove();
}

const numbers = new Intl.NumberFormat("en");
export const number = (value) => numbers.format(value);
export const percent = (part) => `${(100 * part).toFixed(1)} %`;
export const seconds = (ms) => (ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`);
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

export const colour = (index) => `var(--shard-${index % 8})`;

const SVG = "http://www.w3.org/2000/svg";
const GAP = 0.003;

function circle(ring, id, { radius, width, begin, part, stroke, opacity = 1 }) {
  let arc = ring.querySelector(`[data-id="${id}"]`);
  if (!arc) {
    arc = document.createElementNS(SVG, "circle");
    arc.dataset.id = id;
    ring.prepend(arc);
  }
  const gap = part > 2 * GAP && part < 1 ? GAP : 0;
  const shown = { cx: 120, cy: 120, r: radius, pathLength: 1, transform: "rotate(-90 120 120)", "stroke-width": width,
    "stroke-dasharray": `${Math.max(part - gap, 0)} 1`, "stroke-dashoffset": -begin, "stroke-opacity": opacity };
  for (const [key, value] of Object.entries(shown)) arc.setAttribute(key, value);
  arc.style.stroke = stroke;
  return id;
}

// The ring: an arc for the slots of each shard at rest, a paler one for those that migrate, a thin one for its fair share.
export function ring(node, { shards, slots }, title, subtitle) {
  const drawn = new Set();
  let begin = 0;
  let fair = 0;
  for (const [index, shard] of shards.entries()) {
    const stroke = colour(index);
    const migrating = Math.min(shard.migrating, shard.slots) / slots;
    const wide = { radius: 88, width: 26, stroke };
    drawn.add(circle(node, `rest-${shard.id}`, { ...wide, begin, part: shard.share - migrating }));
    drawn.add(circle(node, `moves-${shard.id}`, { ...wide, begin: begin + shard.share - migrating, part: migrating, opacity: 0.4 }));
    drawn.add(circle(node, `fair-${shard.id}`, { radius: 110, width: 5, stroke, begin: fair, part: shard.fair_share }));
    begin += shard.share;
    fair += shard.fair_share;
  }
  for (const arc of node.querySelectorAll("circle")) if (!drawn.has(arc.dataset.id)) arc.remove();
  for (const [at, line] of [title, subtitle].entries()) {
    let text = node.querySelectorAll("text")[at];
    if (!text) {
      text = document.createElementNS(SVG, "text");
      text.setAttribute("x", 120);
      text.setAttribute("y", at === 0 ? 126 : 150);
      node.append(text);
    }
    say(text, line);
  }
  const shares = shards.map((shard) => `${shard.id} ${percent(shard.share)}`).join(", ");
  node.setAttribute("aria-label", `Shares of the shards: ${shares}`);
}

// A bar with a caption. `mark`, if there is one, is the fair share.
export function bar(name) {
  const track = element("div", { class: "track", "aria-hidden": "true" }, element("i"), element("b"));
  return element("div", { class: "bar" }, element("p", {}, element("span", {}, name), element("span")), track);
}

export function fill(node, { text, part, mark, scale = 1 }) {
  const width = (value) => `${Math.min(100, (100 * value) / scale).toFixed(2)}%`;
  say(node.querySelector("p").lastElementChild, text);
  node.querySelector("i").style.width = width(part);
  const tick = node.querySelector("b");
  tick.hidden = mark === undefined;
  if (mark !== undefined) tick.style.left = width(mark);
}
