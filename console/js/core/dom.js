// Elements from code. Whatever is data becomes a text node or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** `h("div.card", {title: "…", onclick: f}, "text", [more])`: classes may stand in the tag, `null` children are left out. */
export function h(tag, props, ...children) {
  return build((name) => document.createElement(name), tag, props, children);
}

/** The same for elements of a drawing. */
export function s(tag, props, ...children) {
  return build((name) => document.createElementNS(SVG, name), tag, props, children);
}

function build(make, tag, props, children) {
  const [name, ...classes] = tag.split(".");
  const element = make(name || "div");
  if (classes.length > 0) element.setAttribute("class", classes.join(" "));
  if (props !== null && props !== undefined && !isPlain(props)) {
    children.unshift(props);
    props = null;
  }
  for (const [key, value] of Object.entries(props ?? {})) put(element, key, value);
  append(element, children);
  return element;
}

function isPlain(value) {
  return typeof value === "object" && !(value instanceof Node) && !Array.isArray(value);
}

function put(element, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith("on")) {
    element.addEventListener(key.slice(2), value);
  } else if (key === "class") {
    for (const name of String(value).split(" ")) if (name) element.classList.add(name);
  } else if (key === "style") {
    // Through the object model: the page's policy allows no style attributes.
    for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
  } else if (key === "data") {
    for (const [name, text] of Object.entries(value)) if (text !== undefined) element.dataset[name] = text;
  } else if (key === "value" && "value" in element) {
    element.value = value;
  } else if (key === "checked" || key === "disabled" || key === "indeterminate") {
    element[key] = Boolean(value);
  } else {
    element.setAttribute(key, value === true ? "" : String(value));
  }
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Puts new content in the place of the old, and keeps the focus if the element that had it comes back under the same id. */
export function fill(element, ...children) {
  const active = document.activeElement;
  const id = active && active.id && element.contains(active) ? active.id : null;
  const caret = id && "selectionStart" in active ? safeCaret(active) : null;
  element.replaceChildren();
  append(element, children);
  const again = id ? document.getElementById(id) : null;
  if (again) {
    again.focus({ preventScroll: true });
    if (caret !== null && again.setSelectionRange) {
      try {
        again.setSelectionRange(caret, caret);
      } catch {
        // Not a text field.
      }
    }
  }
  return element;
}

function safeCaret(field) {
  try {
    return field.selectionStart;
  } catch {
    return null;
  }
}

let pressed = false;
const waiters = [];
addEventListener("pointerdown", () => (pressed = true), true);
for (const type of ["pointerup", "pointercancel", "dragend"]) {
  addEventListener(
    type,
    () =>
      setTimeout(() => {
        pressed = false;
        for (const go of waiters.splice(0)) go();
      }),
    true,
  );
}

/** Until no button is held down: what is replaced between press and release never hears of the click. */
export function quiet() {
  return pressed ? new Promise((resolve) => waiters.push(resolve)) : Promise.resolve();
}
