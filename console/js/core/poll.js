// Doing something again and again, for as long as a view is open and somebody looks at it.

import { pause } from "./api.js";

export async function every(ms, signal, act) {
  while (!signal.aborted) {
    await pause(ms, signal);
    if (!signal.aborted && !document.hidden) await act();
  }
}
