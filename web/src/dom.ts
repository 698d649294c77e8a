/** Small helpers to build elements; text is only ever set as text. */

const SVG = "http://www.w3.org/2000/svg";

export type Attributes = Record<string, string | number | boolean | undefined>;

function fill<T extends Element>(element: T, attributes: Attributes, children: (Node | string)[]): T {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

export function html<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag) as SVGElementTagNameMap[K], attributes, children);
}

export function button(label: string, title: string, act: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const element = html("button", { type: "button", title, ...attributes }, label);
  element.addEventListener("click", act);
  return element;
}
