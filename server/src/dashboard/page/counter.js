// The balance of an account, and its segments.

import { get } from "./api.js";
import { $, bar, fill, plural, say, sync } from "./draw.js";

const grouped = (amount) => BigInt(amount).toLocaleString("en");

async function show(event) {
  event.preventDefault();
  const query = { name: $("account").value, namespace: $("account-namespace").value.trim() };
  try {
    const account = await get("account", query);
    const doubtful = account.segments.filter((segment) => segment.doubtful).length;
    say($("counter-note"), [
      `${account.name}: ${grouped(account.available)} available, ${grouped(account.held)} set aside, in ${plural(account.segments.length, "segment")}.`,
      doubtful ? `${plural(doubtful, "segment is", "segments are")} in doubt and moves no money: ringfence counter accept.` : "",
      account.lost.length ? `${plural(account.lost.length, "segment is", "segments are")} lost: ringfence counter accept goes on without that money.` : "",
      "Segments are read one by one: money that moves meanwhile may be in none.",
    ].filter(Boolean).join(" "));
    const greatest = Math.max(...account.segments.map((segment) => segment.part), 0.01);
    sync($("segments"), account.segments, (segment) => `${segment.index}`, makeSegment,
      (node, segment) => fill(node.firstElementChild, { text: grouped(segment.available), part: segment.part, scale: greatest }));
  } catch (error) {
    say($("counter-note"), error.message);
    $("segments").replaceChildren();
  }
}

function makeSegment({ index }) {
  const item = document.createElement("li");
  item.append(bar(`Segment ${index}`));
  return item;
}

export function listenToCounter() {
  $("counter").addEventListener("submit", show);
}
