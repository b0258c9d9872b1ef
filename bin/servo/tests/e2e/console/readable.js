// What a person could not read or press on this page, as a list of texts: contrast below 4.5:1, controls without a name or with
// one that others have, too, and boxes that are too small to hit. An expression: the browser gives back its value.
(() => {
  const found = [];
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  canvas.canvas.width = canvas.canvas.height = 1;
  // Whatever way a colour is written, the browser paints it.
  const known = new Map();
  const rgba = (text) => {
    if (!known.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
  };
  const over = (top, ground) => [0, 1, 2].map((at) => top[at] * top[3] + ground[at] * (1 - top[3])).concat(1);
  const level = ([r, g, b]) => {
    const part = [r, g, b].map((value) => value / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const ratio = (a, b) => {
    const [high, low] = [level(a), level(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const isShown = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && element.checkVisibility({ visibilityProperty: true });
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !isShown(element) || element.closest(":disabled, .sr, script, style, noscript")) continue;
    let strength = 1;
    for (let at = element; at; at = at.parentElement) strength *= Number(getComputedStyle(at).opacity);
    const style = getComputedStyle(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const [r, g, b, a] = rgba(colour);
    const below = ground(element);
    const seen = ratio(over([r, g, b, a * strength], below), below);
    if (seen < 4.5) found.push(`contrast ${seen.toFixed(2)}: ${node.data.trim().slice(0, 40)} (${element.className.baseVal ?? element.className})`);
  }
  const boxes = new Map();
  for (const control of document.querySelectorAll("a[href], button, input, select, textarea, [role=button]")) {
    if (!isShown(control)) continue;
    const label = control.labels?.[0]?.textContent;
    const name = (control.getAttribute("aria-label") || label || control.textContent || control.title || control.querySelector("img")?.alt || "").trim();
    if (!name) found.push(`no name: ${control.outerHTML.slice(0, 120)}`);
    if (control.querySelector("a, button, input")) found.push(`a control within a control: ${name}`);
    if (control.type !== "checkbox" || !control.closest("table")) continue;
    const box = control.getBoundingClientRect();
    if (box.width < 24 || box.height < 24) found.push(`a box of ${box.width}x${box.height}: ${name}`);
    boxes.set(name, (boxes.get(name) ?? 0) + 1);
  }
  for (const [name, many] of boxes) if (many > 1) found.push(`${many} boxes are called ${name}`);
  // On a telephone everything that is pressed is big enough for a finger, but for words in a sentence.
  if (innerWidth < 500) {
    for (const control of document.querySelectorAll("nav[aria-label=Pages] a, button, select")) {
      if (!isShown(control) || control.disabled) continue;
      const box = control.getBoundingClientRect();
      if (box.height < 44) found.push(`${Math.round(box.height)} pixels high: ${(control.getAttribute("aria-label") || control.textContent).slice(0, 40)}`);
    }
    const beyond = document.documentElement.scrollWidth - innerWidth;
    if (beyond > 0) found.push(`${beyond} pixels wider than the screen`);
  }
  return found;
})()
