// The requests of the page. The token of the caller stays in the tab, and travels in a header only.

const TOKEN = "ringfence-token";
const AGAIN_AFTER_MS = [500, 1000, 2000, 4000];

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (text) => sessionStorage.setItem(TOKEN, text),
  forget: () => sessionStorage.removeItem(TOKEN),
};

async function send(path, options = {}) {
  const headers = { ...options.headers };
  if (token.get()) headers.authorization = `Bearer ${token.get()}`;
  const answer = await fetch(`api/${path}`, { ...options, headers, cache: "no-store", redirect: "error" });
  if (answer.ok) return answer;
  const text = await answer.text();
  let message = text;
  try {
    message = JSON.parse(text).message;
  } catch { /* Not an answer of the dashboard itself: its text is the message. */ }
  throw new Refused(answer.status, message || `status ${answer.status}`);
}

export async function get(path, query) {
  return (await send(`${path}?${new URLSearchParams(query)}`)).json();
}

export async function post(path, body) {
  const headers = { "content-type": "application/json" };
  return (await send(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Calls `show` with every ring. `tell` gets "live", or the error whenever there is no connection. Ends when the coordinator
// refuses the caller.
export async function live(show, tell) {
  for (let failures = 0; ; failures += 1) {
    try {
      const answer = await send("live");
      tell("live");
      for await (const event of events(answer.body)) {
        failures = 0;
        show(JSON.parse(event));
      }
      tell(new Error("the coordinator ended the connection"));
    } catch (error) {
      tell(error);
      if (error.status === 401 || error.status === 403) return;
    }
    await pause(AGAIN_AFTER_MS[Math.min(failures, AGAIN_AFTER_MS.length - 1)]);
  }
}

// The data of server-sent events. (EventSource cannot send the header with the token.)
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n").filter((line) => line.startsWith("data:"));
      text = text.slice(end + 2);
      if (lines.length > 0) yield lines.map((line) => line.slice(5).trimStart()).join("\n");
    }
  }
}
