// Held locks: the list, one lock, and its release by force.

import { get, post } from "./api.js";
import { $, element, number, plural, say, seconds, sync } from "./draw.js";

const TYPED_FOR_MS = 200;
const SHOWN_EVERY_MS = 1000;

// The lock in the dialog.
let open = null;

const idOf = ({ key }) => `${key.namespace}/${key.hex}`;

export async function refreshLocks() {
  const query = { search: $("search").value.trim(), namespace: $("namespace").value.trim() };
  let list;
  try {
    list = await get("locks", query);
  } catch (error) {
    say($("locks-note"), `No list: ${error.message}`);
    return;
  }
  // The answer to a search that has changed since is of no use.
  if (query.search !== $("search").value.trim() || query.namespace !== $("namespace").value.trim()) return;
  const more = list.cut ? "at least " : "";
  say($("held"), `${number(list.held)}${list.cut ? "+" : ""}`);
  say($("waiting"), number(list.waiting));
  say($("locks-note"), [
    list.held === 0 ? "No lock is held." : `${more}${plural(list.held, "lock is", "locks are")} held; matching: ${number(list.matched)}, shown: ${number(list.locks.length)}.`,
    ...list.failed.map(({ id, error }) => `Shard ${id} lists none: ${error}.`),
  ].join(" "));
  sync($("locks"), list.locks, idOf, makeRow, updateRow);
  sync($("hot"), list.hot, idOf, makeRow, updateRow);
  $("hot-empty").hidden = list.hot.length > 0;
}

function makeRow(lock) {
  const row = element("button", { type: "button", "aria-haspopup": "dialog" }, element("bdi", { class: "key" }), element("span", {}, element("bdi")),
    element("span", { class: "end" }), element("span", { class: "end" }, element("span")));
  row.addEventListener("click", () => show(lock.key));
  return element("li", {}, row);
}

function updateRow(node, { key, holder, others, waiting, shard }) {
  const [name, held, waits, left] = node.firstElementChild.children;
  say(name, key.namespace === "default" ? key.shown : `${key.namespace}: ${key.shown}`);
  say(held.firstElementChild, others ? `${holder.label} and ${plural(others, "other")}` : holder.label);
  say(waits, waiting ? plural(waiting, "waits", "wait") : "");
  say(left.firstElementChild, `held for ${seconds(holder.held_for_ms)}, shard ${shard}`);
}

async function show(key) {
  open = key;
  say($("lock-key"), key.shown);
  say($("lock-where"), `namespace ${key.namespace}`);
  say($("lock-note"), "");
  $("lock-holders").replaceChildren();
  $("lock-waiters").replaceChildren();
  $("reason").value = "";
  ask(false);
  $("lock").showModal();
  await refreshLock();
}

async function refreshLock() {
  const key = open;
  if (!key) return;
  try {
    const lock = await get("lock", { namespace: key.namespace, hex: key.hex });
    if (key !== open) return;
    sync($("lock-holders"), lock.holders, (holder) => holder.token, makeHolder, updateHolder);
    sync($("lock-waiters"), lock.waiters.map((waiter, at) => ({ ...waiter, at })), ({ at }) => `${at}`, () => element("li", {}, element("bdi")),
      (node, { label, callers, asks_for }) => say(node.firstElementChild, `${label}${asks_for ? ` (${asks_for})` : ""}${callers > 1 ? `, for ${number(callers)} callers` : ""}`));
    $("lock-nobody").hidden = lock.waiters.length > 0;
    $("ask-release").disabled = lock.holders.length === 0;
    if (lock.holders.length === 0 && $("lock-note").textContent === "") say($("lock-note"), "Nobody holds this lock.");
  } catch (error) {
    say($("lock-note"), error.message);
  }
}

function makeHolder() {
  const entry = (name) => [element("dt", {}, name), element("dd", {}, element("bdi"))];
  return element("li", {}, element("dl", {}, ...entry("Holder"), ...entry("Token"), ...entry("Lease")));
}

function updateHolder(node, { label, token, last_token, remaining_ms, held_for_ms, share }) {
  const [holder, tokens, lease] = node.querySelectorAll("bdi");
  say(holder, share ? `${label} (${share})` : label);
  say(tokens, token === last_token ? token : `from ${token} to ${last_token}`);
  say(lease, `held for ${seconds(held_for_ms)}, ends in ${seconds(remaining_ms)} unless renewed`);
}

// Shows the form that asks for the reason, or hides it.
function ask(asks) {
  $("release").hidden = !asks;
  $("lock-actions").hidden = asks;
  if (asks) $("reason").focus();
}

async function release(event) {
  event.preventDefault();
  const { namespace, hex } = open;
  const submit = $("release").querySelector("[type=submit]");
  submit.disabled = true;
  try {
    const { holders } = await post("release", { namespace, hex, reason: $("reason").value });
    const held = holders.map((holder) => `${holder.label} held it with token ${holder.last_token}`);
    say($("lock-note"), held.length ? `Released: ${held.join("; ")}.` : "It was free already.");
    ask(false);
    $("close").focus();
  } catch (error) {
    say($("lock-note"), `Not released: ${error.message}`);
  }
  submit.disabled = false;
  await Promise.all([refreshLock(), refreshLocks()]);
}

export function listenToLocks() {
  let typed;
  for (const id of ["search", "namespace"]) {
    $(id).addEventListener("input", () => {
      clearTimeout(typed);
      typed = setTimeout(refreshLocks, TYPED_FOR_MS);
    });
  }
  $("filter").addEventListener("submit", (event) => {
    event.preventDefault();
    refreshLocks();
  });
  $("ask-release").addEventListener("click", () => ask(true));
  $("keep").addEventListener("click", () => ask(false));
  $("close").addEventListener("click", () => $("lock").close());
  $("lock").addEventListener("close", () => {
    open = null;
  });
  $("release").addEventListener("submit", release);
  setInterval(refreshLock, SHOWN_EVERY_MS);
}
