// Who is using the console, and what that one may do.

import { get, key } from "./api.js";

let me = null;

export async function load() {
  me = await get("/v1/whoami");
  return me;
}

export const who = () => me;

/** Whether a button would be refused. The server decides again; this only spares people the refusal. */
export const may = (permission) => me?.permissions?.includes(permission) ?? false;

export function leave() {
  key.forget();
  me = null;
}
