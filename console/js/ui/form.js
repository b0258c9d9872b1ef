// A form made from a JSON Schema. What it cannot draw becomes a field for JSON, so every schema can be filled in.

import { fill, h } from "../core/dom.js";
import { button } from "./parts.js";

const DEPTH_MAX = 4;

/** `{element, read}`; `read` throws an error that names the field. */
export function schemaForm(schema) {
  const root = isObject(schema)
    ? objectField(schema, "", 0, true)
    : jsonInput({ label: "Params", value: "{}", required: false, path: "params" });
  return { element: root.element, read: () => root.read() ?? {} };
}

const isObject = (schema) =>
  schema &&
  typeof schema === "object" &&
  (schema.type === "object" || schema.properties) &&
  Object.keys(schema.properties ?? {}).length > 0;

function field(schema, name, required, path, depth) {
  const label = schema.title ?? name;
  const about = { label, hint: schema.description, required, path, schema };
  if (schema.const !== undefined) return constant(about);
  if (Array.isArray(schema.enum)) return choice(about);
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : schema.type;
  if (type === "boolean") return flag(about);
  if (type === "integer" || type === "number") return numberInput(about, type === "integer");
  if (type === "string") return textInput(about);
  if (isObject(schema) && depth < DEPTH_MAX) return objectField(schema, path, depth, false, about);
  if (type === "array" && schema.items && depth < DEPTH_MAX && schema.items.type !== "array") return listField(about, depth);
  return jsonInput({ ...about, value: schema.default === undefined ? "" : JSON.stringify(schema.default, null, 2) });
}

let serial = 0;
const idOf = (path) => `form-${path.replace(/[^A-Za-z0-9]+/g, "-")}-${serial++}`;

function wrap({ label, hint, required }, id, input, extra = "") {
  return h(
    "div.field",
    { class: extra },
    h("label.label", { for: id }, label, required ? h("span.req", { title: "needed" }, "*") : null),
    input,
    hint ? h("span.hint", hint) : null,
  );
}

function wrong(path, message) {
  return Object.assign(new Error(`${path}: ${message}`), { title: "Please check the form" });
}

function textInput(about) {
  const { schema, path, required } = about;
  const long = (schema.maxLength ?? 0) > 200 || schema.format === "textarea";
  const secret = schema.format === "password" || schema.format === "secret" || schema["x-sensitive"];
  const id = idOf(path);
  const more = {
    id,
    value: schema.default ?? "",
    placeholder: schema.examples?.[0] ?? (schema.format ? schema.format : ""),
    name: path,
  };
  const input = long
    ? h("textarea", { ...more, rows: 4 })
    : h("input", { ...more, type: secret ? "password" : "text", autocomplete: "off" });
  return {
    element: wrap(about, id, input),
    read: () => {
      if (input.value === "" && !required) return undefined;
      if (input.value === "" && required && schema.minLength > 0) throw wrong(path, "is needed");
      return input.value;
    },
  };
}

function numberInput(about, whole) {
  const { schema, path, required } = about;
  const id = idOf(path);
  const input = h("input", {
    id,
    type: "number",
    step: whole ? "1" : "any",
    min: schema.minimum,
    max: schema.maximum,
    value: schema.default ?? "",
    name: path,
  });
  return {
    element: wrap(about, id, input),
    read: () => {
      if (input.value === "" && !required) return undefined;
      if (input.value === "" || Number.isNaN(Number(input.value))) throw wrong(path, "is a number");
      return Number(input.value);
    },
  };
}

function flag(about) {
  const id = idOf(about.path);
  const input = h("input", { id, type: "checkbox", checked: about.schema.default === true, name: about.path });
  return {
    element: h(
      "div.field.check",
      input,
      h("label.label", { for: id }, about.label),
      about.hint ? h("span.hint", about.hint) : null,
    ),
    read: () => input.checked,
  };
}

function choice(about) {
  const { schema, path, required } = about;
  const id = idOf(path);
  const input = h(
    "select",
    { id, name: path },
    required ? null : h("option", { value: "" }, "–"),
    schema.enum.map((value, at) => h("option", { value: String(at), selected: value === schema.default }, String(value))),
  );
  return {
    element: wrap(about, id, input),
    read: () => (input.value === "" ? undefined : schema.enum[Number(input.value)]),
  };
}

function constant(about) {
  return {
    element: wrap(about, "", h("code", JSON.stringify(about.schema.const))),
    read: () => about.schema.const,
  };
}

function jsonInput(about) {
  const { path, required, value = "" } = about;
  const id = idOf(path);
  const input = h("textarea.mono", { id, rows: 4, spellcheck: "false", value, name: path });
  return {
    element: wrap({ ...about, hint: about.hint ?? "JSON" }, id, input),
    read: () => {
      if (input.value.trim() === "" && !required) return undefined;
      try {
        return JSON.parse(input.value);
      } catch (error) {
        throw wrong(path, `is not JSON (${error.message})`);
      }
    },
  };
}

function objectField(schema, path, depth, top, about = {}) {
  const needed = new Set(schema.required ?? []);
  // The registry keeps members by name; what is needed comes first, what is nested last.
  const rank = ([name, part]) =>
    (needed.has(name) ? [...needed].indexOf(name) : 1000) + (part?.type === "object" || part?.type === "array" ? 1000 : 0);
  const fields = Object.entries(schema.properties)
    .sort((a, b) => rank(a) - rank(b))
    .map(([name, part]) => [name, field(part ?? {}, name, needed.has(name), path ? `${path}.${name}` : name, depth + 1)]);
  const inside = fields.map(([, one]) => one.element);
  return {
    element: top
      ? h("div", inside)
      : h("fieldset", h("legend", about.label), about.hint ? h("p.hint.muted.small", about.hint) : null, inside),
    read: () => {
      const value = {};
      for (const [name, one] of fields) {
        const part = one.read();
        if (part !== undefined) value[name] = part;
      }
      return Object.keys(value).length === 0 && !top && !about.required ? undefined : value;
    },
  };
}

function listField(about, depth) {
  const { schema, path, required } = about;
  let items = [];
  const place = h("div");
  const draw = () =>
    fill(
      place,
      items.map((item, at) =>
        h(
          "div",
          { style: { display: "flex", gap: "6px", "align-items": "flex-start" } },
          h("div", { style: { flex: "1" } }, item.element),
          button("Remove", () => ((items = items.filter((_, other) => other !== at)), draw()), { kind: "small" }),
        ),
      ),
      button("Add", () => add(), { kind: "small" }),
    );
  const add = (value) => {
    const part = value === undefined ? schema.items : { ...schema.items, default: value };
    const item = field(part, `${about.label} ${items.length + 1}`, true, `${path}[${items.length}]`, depth + 1);
    items = [...items, item];
    draw();
  };
  draw();
  if (Array.isArray(schema.default)) schema.default.forEach((value) => add(value));
  return {
    element: h("fieldset", h("legend", about.label), about.hint ? h("p.muted.small", about.hint) : null, place, h("br")),
    read: () => (items.length === 0 && !required ? undefined : items.map((item) => item.read())),
  };
}
