// The ring: its picture, its shards, and what an operator should know, in plain words.

import { $, bar, colour, element, fill, number, percent, plural, ring, say, seconds, sync } from "./draw.js";

const LOAD_FOR_MS = 60_000;

let shown = null;
// Per second: the time, and the acquisitions so far of each shard.
const history = [];

export function showRing(view) {
  shown = view;
  const ready = view.shards.filter((shard) => shard.state.is === "ready").length;
  say($("topology"), `topology ${view.id.slice(0, 8)}, version ${number(view.version)}, home ${view.home}`);
  say($("ready"), `${ready} of ${view.shards.length}`);
  say($("moving"), number(view.resize?.slots_to_move ?? 0));
  sync($("notices"), notices(view), (notice) => notice.id, notice, updateNotice);
  const [title, subtitle] = heading(view);
  ring($("ring"), view, title, subtitle);
  showLoad();
}

function heading(view) {
  if (!view.resize) return [number(view.slots), "slots"];
  const { slots_in_all, slots_to_move } = view.resize;
  return [`${Math.floor(100 * (1 - slots_to_move / Math.max(slots_in_all, 1)))} %`, "moved"];
}

// The loads, and with them the list of shards.
export function showLoad() {
  if (!shown) return;
  const now = performance.now();
  history.push([now, new Map(shown.shards.map((shard) => [shard.id, shard.acquisitions]))]);
  while (history.length > 1 && history[1][0] < now - LOAD_FOR_MS) history.shift();
  const first = history[0][1];
  // A coordinator that was restarted counts from 0 again.
  const counts = shown.shards.map((shard) => Math.max(0, shard.acquisitions - (first.get(shard.id) ?? 0)));
  const all = counts.reduce((sum, count) => sum + count, 0);
  const elapsed = Math.max(now - history[0][0], 1000);
  say($("since"), elapsed < LOAD_FOR_MS - 1000 ? `${seconds(elapsed)} since this page was opened` : "last minute");
  const rows = shown.shards.map((shard, index) => ({ shard, load: all ? counts[index] / all : 0, rate: (1000 * counts[index]) / elapsed }));
  const scale = Math.max(...rows.flatMap(({ shard, load }) => [shard.share, shard.fair_share, load]), 0.01);
  sync($("shards"), rows, (row) => row.shard.id, makeShard, (node, row, index) => updateShard(node, row, index, scale));
}

function makeShard({ shard }) {
  const about = element("div", { class: "about" }, element("h3", { class: "key" }, shard.id), element("p", { class: "muted" }),
    element("p", { class: "state" }));
  return element("li", {}, element("span", { class: "chip", "aria-hidden": "true" }, shard.id.slice(0, 2)), about, bar("Share"), bar("Load"));
}

function updateShard(node, { shard, load, rate }, index, scale) {
  node.style.setProperty("--shard", colour(index));
  const [address, state] = node.querySelectorAll(".about p");
  const [share, loaded] = node.querySelectorAll(".bar");
  const zone = shard.zone ? `, zone ${shard.zone}` : "";
  const weight = shard.weight === 1 ? "" : `, weight ${shard.weight}`;
  say(address, `${shard.address}${zone}${weight}`);
  address.title = address.textContent;
  state.dataset.is = shard.state.is;
  say(state, condition(shard));
  fill(share, { text: `${percent(shard.share)}, fair ${percent(shard.fair_share)}`, part: shard.share, mark: shard.fair_share, scale });
  share.title = `${number(shard.slots)} slots; fair share: ${percent(shard.fair_share)}`;
  fill(loaded, { text: rate > 0 ? `${percent(load)}, ${rate < 10 ? rate.toFixed(1) : number(Math.round(rate))}/s` : "none", part: load, mark: shard.fair_share, scale });
}

function condition({ membership, state }) {
  const words = {
    unknown: "not asked yet",
    ready: "ready",
    recovering: `new locks in ${seconds(state.left_ms)}`,
    down: "down",
  }[state.is];
  return membership === "member" ? words : `${membership}; ${words}`;
}

// What an operator should know.
function notices(view) {
  const list = [];
  for (const shard of view.shards) {
    const { id, state, slots } = shard;
    if (state.is === "down") {
      list.push({ id: `down-${id}`, kind: "bad", text: `Shard ${id} is down: ${state.error}. Locks that are held there stay with their holders until their leases end. Nobody gets a new lock on its ${plural(slots, "slot")} until it answers. The other shards are not affected.` });
    } else if (state.is === "recovering") {
      list.push({ id: `recovering-${id}`, kind: "warn", text: `Shard ${id} is new or was restarted. It grants no new lock for ${seconds(state.left_ms)}, so that holders can renew the locks that they had. The other shards are not affected.` });
    }
  }
  for (const { id, address, slots_to_open } of view.failed) {
    const rest = slots_to_open
      ? `The other shards have its slots; ${plural(slots_to_open, "slot is", "slots are")} not open yet, and nobody gets a lock there until then.`
      : "The other shards have its slots.";
    list.push({ id: `failed-${id}`, kind: "warn", text: `Shard ${id} (${address}) was declared dead. ${rest}` });
  }
  if (view.resize) {
    const { aim, slots_in_all, slots_to_move, slots_migrating } = view.resize;
    list.push({ id: "resize", kind: "news", progress: [slots_in_all - slots_to_move, slots_in_all],
      text: `A resize is under way (${aim}): ${plural(slots_to_move, "slot")} to move, ${number(slots_migrating)} of them migrating. Locks stay held, and all keys stay available.` });
  }
  return list;
}

function notice({ kind }) {
  return element("li", { "data-kind": kind }, element("span"));
}

function updateNotice(node, { text, progress }) {
  say(node.firstElementChild, text);
  if (!progress) return;
  const bar = node.querySelector("progress") ?? node.appendChild(element("progress", { "aria-label": "Slots moved" }));
  bar.max = Math.max(progress[1], 1);
  bar.value = progress[0];
}
