// The balance of an account, and its segments; and lists of accounts.

import { get } from "./api.js";
import { $, bar, element, fill, number, plural, say, sync } from "./draw.js";

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

async function list(event) {
  event.preventDefault();
  const query = { prefix: $("prefix").value, condition: $("condition").value, namespace: $("account-namespace").value.trim() };
  say($("accounts-note"), "Reads the accounts…");
  try {
    const found = await get("accounts", query);
    say($("accounts-note"), [
      found.matched === 0 ? "None." : `${found.cut ? "At least " : ""}${plural(found.matched, "account")}; shown: ${number(found.accounts.length)}.`,
      ...found.failed.map(({ id, error }) => `Shard ${id} lists none: ${error}.`),
    ].join(" "));
    sync($("accounts"), found.accounts, ({ name }) => name, makeAccount, updateAccount);
  } catch (error) {
    say($("accounts-note"), `No list: ${error.message}`);
    $("accounts").replaceChildren();
  }
}

function makeAccount({ name }) {
  const row = element("button", { type: "button" }, element("bdi", { class: "key" }), element("span"), element("span", { class: "end" }),
    element("span", { class: "end" }, element("span")));
  row.addEventListener("click", () => {
    $("account").value = name;
    $("counter").requestSubmit();
  });
  return element("li", {}, row);
}

function updateAccount(node, { name, available, held, segments, state }) {
  const [title, what, amount, aside] = node.firstElementChild.children;
  const shown = (text) => (text === "?" ? text : grouped(text));
  say(title, name);
  say(what, state || plural(segments, "segment"));
  say(amount, shown(available));
  say(aside.firstElementChild, held === "0" ? "" : `${shown(held)} set aside`);
}

export function listenToCounter() {
  $("counter").addEventListener("submit", show);
  $("accounts-filter").addEventListener("submit", list);
}
