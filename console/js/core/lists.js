// Lists that several statuses make together. The server has an index for one status, so each is asked for by itself and the
// answers are merged here: a million invocations make no difference.

import { get, REST } from "./api.js";

const PAGE = 200;

/** The newest (or oldest) invocations in these statuses, `limit` of them; `more` says whether there are others. */
export async function inStatus(statuses, { limit = PAGE, oldest = false, entrypoint = "", signal, tell = () => {} } = {}) {
  const lists = await Promise.all(statuses.map((status) => one(status, { limit, oldest, entrypoint, signal, tell })));
  const at = (record) => Date.parse(record.timestamps.created_at);
  const items = lists.flatMap((list) => list.items).sort((a, b) => (oldest ? at(a) - at(b) : at(b) - at(a)));
  return { items: items.slice(0, limit), more: items.length > limit || lists.some((list) => list.more) };
}

async function one(status, { limit, oldest, entrypoint, signal, tell }) {
  const items = [];
  let cursor = null;
  for (;;) {
    const size = Math.min(PAGE, limit - items.length);
    const found = await get(
      `${REST}/invocations`,
      { status, entrypoint_id: entrypoint, limit: size, cursor, $orderby: oldest ? "created_at asc" : "" },
      { signal },
    );
    items.push(...found.items);
    cursor = found.page_info.next_cursor;
    if (!found.page_info.has_more || items.length >= limit) return { items, more: found.page_info.has_more };
    tell(items.length);
  }
}
