// Which operations the timeline shows as rows, and in which order: what failed and what is under way always, the rest as far
// as it fits. Pure: it knows no page.
//
// Ten thousand operations are mostly alike. A wide group is closed at first and says what is in it; a long stretch of
// siblings of which nothing failed and nothing runs is folded to its ends. Both open by a click, and neither hides a failure.

/** A group with more children than this is closed at first. */
const GROUP = 20;
/** A quiet stretch that is longer than this is folded; so many of it stay at each end. */
const STRETCH = 24;
const HEAD = 6;
const TAIL = 4;
/** An id is found by its beginning; shorter words would be in many of them by chance. */
const ID_CHARS = 6;
/** What is under way in a closed group, before it is only counted. */
const ACTIVE_SHOWN = 50;

/**
 * `show` is "all", "failed" or "active"; `opened` tells of groups and folds by their keys whether somebody opened or closed
 * them; `chosen` is shown whatever it is. A line is `{key, operation, depth, totals, group}` or `{key, fold, depth}`.
 */
export function arrange(model, { show = "all", text = "", opened = new Map(), chosen = null, seen = () => true } = {}) {
  const below = children(model, seen);
  const totals = count(model, below, chosen);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const lines = show === "all" && words.length === 0 ? overview(below, totals, opened) : found(below, totals, { model, show, words });
  return { lines, ...summary(model, below, totals) };
}

const ROOT = null;

function children(model, seen) {
  const below = new Map([[ROOT, []]]);
  const kept = new Set();
  for (const operation of model.operations.values()) if (seen(operation)) kept.add(operation.id);
  for (const operation of model.operations.values()) {
    if (!kept.has(operation.id)) continue;
    const parent = kept.has(operation.parent) && operation.parent !== operation.id ? operation.parent : ROOT;
    if (!below.has(parent)) below.set(parent, []);
    below.get(parent).push(operation);
  }
  return below;
}

/** Of each operation with all that is below it: how many failed and how many are active, each counted where it began. */
function count(model, below, chosen) {
  const totals = new Map();
  const order = [];
  const stack = [...below.get(ROOT)];
  while (stack.length > 0) {
    const operation = stack.pop();
    order.push(operation);
    for (const child of below.get(operation.id) ?? []) stack.push(child);
  }
  for (const operation of order.reverse()) {
    const own = { size: 0, failed: 0, active: 0, chosen: operation.id === chosen };
    for (const child of below.get(operation.id) ?? []) {
      const of = totals.get(child.id);
      own.size += of.size + 1;
      own.failed += of.failed;
      own.active += of.active;
      own.chosen ||= of.chosen;
    }
    // Whatever is around a failure mostly failed with it; one failure is one.
    own.origin = operation.status === "failed" && own.failed === 0;
    own.tip = own.active === 0 && model.isActive(operation);
    if (own.origin) own.failed = 1;
    if (own.tip) own.active = 1;
    totals.set(operation.id, own);
  }
  return totals;
}

function summary(model, below, totals) {
  const failures = [];
  let [all, active] = [0, 0];
  const stack = [...below.get(ROOT)].reverse();
  while (stack.length > 0) {
    const operation = stack.pop();
    const own = totals.get(operation.id);
    all += 1;
    if (own.tip) active += 1;
    if (own.origin) failures.push(operation.id);
    const list = below.get(operation.id) ?? [];
    for (let at = list.length - 1; at >= 0; at--) stack.push(list[at]);
  }
  return { all, active, failures };
}

function overview(below, totals, opened) {
  const lines = [];
  const isQuiet = (operation) => {
    const own = totals.get(operation.id);
    return own.failed === 0 && own.active === 0 && !own.chosen;
  };
  // Nesting has no limit here, so there is no recursion: what is still to be done is a stack.
  const work = [];
  const push = (items) => {
    for (let at = items.length - 1; at >= 0; at--) work.push(items[at]);
  };

  const level = (parent, depth, whole) => {
    const list = below.get(parent) ?? [];
    const todo = [];
    let stretch = [];
    const flush = () => {
      const key = stretch.length > STRETCH ? `fold-${stretch[HEAD].id}` : "";
      if (whole || key === "" || opened.get(key)) {
        for (const operation of stretch) todo.push({ operation, depth });
      } else {
        const folded = stretch.slice(HEAD, stretch.length - TAIL);
        todo.push(...stretch.slice(0, HEAD).map((operation) => ({ operation, depth })));
        todo.push({ key, fold: { count: folded.length, text: byStatus(folded) }, depth });
        todo.push(...stretch.slice(-TAIL).map((operation) => ({ operation, depth })));
      }
      stretch = [];
    };
    for (const operation of list) {
      if (isQuiet(operation)) {
        stretch.push(operation);
      } else {
        flush();
        todo.push({ operation, depth });
      }
    }
    flush();
    return todo;
  };

  /** What a closed group shows all the same. */
  const exceptions = (parent, depth) => {
    const loud = below.get(parent).filter((operation) => !isQuiet(operation));
    const todo = [];
    let active = 0;
    for (const operation of loud) {
      const own = totals.get(operation.id);
      if (own.failed > 0 || own.chosen || active++ < ACTIVE_SHOWN) todo.push({ operation, depth });
    }
    const rest = loud.length - todo.length;
    if (rest > 0) todo.push({ key: `more-${parent}`, opens: parent, fold: { count: rest, text: "active" }, depth });
    return todo;
  };

  push(level(ROOT, 0, false));
  while (work.length > 0) {
    const item = work.pop();
    if (!item.operation) {
      lines.push(item);
      continue;
    }
    const { operation, depth } = item;
    const size = below.get(operation.id)?.length ?? 0;
    const big = size > GROUP;
    const open = opened.get(operation.id) ?? !big;
    const group = size > 0 && (big || opened.has(operation.id)) ? { open, size } : null;
    lines.push({ key: operation.id, operation, depth, totals: totals.get(operation.id), group });
    if (size === 0) continue;
    push(open ? level(operation.id, depth + 1, opened.get(operation.id) === true) : exceptions(operation.id, depth + 1));
  }
  return lines;
}

/** Those that match, and what they are in. */
function found(below, totals, { model, show, words }) {
  const fits = (operation) => {
    const own = totals.get(operation.id);
    if (show === "failed" && !own.origin) return false;
    if (show === "active" && !own.tip) return false;
    if (words.length === 0) return true;
    const text = [operation.name, operation.subType, operation.kind, operation.status, operation.error?.ErrorMessage]
      .filter(Boolean)
      .join(" ")
      .toLowerCase();
    return words.every((word) => text.includes(word) || (word.length >= ID_CHARS && operation.id.toLowerCase().startsWith(word)));
  };
  const kept = new Set();
  for (const list of below.values()) {
    for (const operation of list) {
      if (!fits(operation)) continue;
      kept.add(operation.id);
      let above = model.operations.get(operation.parent);
      while (above && !kept.has(above.id)) {
        kept.add(above.id);
        above = model.operations.get(above.parent);
      }
    }
  }
  const lines = [];
  const stack = [...below.get(ROOT)].reverse().map((operation) => ({ operation, depth: 0 }));
  while (stack.length > 0) {
    const { operation, depth } = stack.pop();
    if (!kept.has(operation.id)) continue;
    lines.push({ key: operation.id, operation, depth, totals: totals.get(operation.id), group: null });
    const list = below.get(operation.id) ?? [];
    for (let at = list.length - 1; at >= 0; at--) stack.push({ operation: list[at], depth: depth + 1 });
  }
  return lines;
}

function byStatus(operations) {
  const counts = new Map();
  for (const { status } of operations) counts.set(status, (counts.get(status) ?? 0) + 1);
  if (counts.size === 1) return [...counts.keys()][0];
  return [...counts].map(([status, many]) => `${many} ${status}`).join(", ");
}
