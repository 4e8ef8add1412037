// Signs in, and keeps the page up to date.

import { Refused, live, token } from "./api.js";
import { listenToCounter } from "./counter.js";
import { $, say } from "./draw.js";
import { listenToLocks, refreshLocks } from "./locks.js";
import { showRing, showLoad } from "./shards.js";

const LOCKS_EVERY_MS = 2000;
const LOAD_EVERY_MS = 1000;

function tell(state) {
  const pill = $("connection");
  const isLive = state === "live";
  pill.dataset.state = isLive ? "live" : "off";
  say(pill, isLive ? "live" : state instanceof Refused ? "refused" : "no connection");
  if (!isLive && state instanceof Refused && state.status !== 401) say($("topology"), state.message);
}

async function open() {
  $("sign-in").hidden = true;
  $("content").hidden = false;
  $("sign-out").hidden = !token.get();
  await live(showRing, (state) => {
    tell(state);
    if (state.status === 401) askForToken(state.message);
  });
}

function askForToken(message) {
  say($("sign-in-error"), token.get() ? `${message}.` : "");
  token.forget();
  $("content").hidden = true;
  $("sign-out").hidden = true;
  $("sign-in").hidden = false;
  $("token").focus();
}

$("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set($("token").value);
  $("token").value = "";
  open();
});

$("sign-out").addEventListener("click", () => {
  token.forget();
  location.reload();
});

listenToLocks();
listenToCounter();
open();
setInterval(showLoad, LOAD_EVERY_MS);
setInterval(() => {
  if (!document.hidden && !$("content").hidden && $("connection").dataset.state === "live") refreshLocks();
}, LOCKS_EVERY_MS);
