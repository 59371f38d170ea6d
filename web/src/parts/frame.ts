// HTML that a program has shown is hostile. It is drawn in a frame whose sandbox allows nothing: no scripts, no forms,
// no other windows, an origin of its own. The frame also inherits the policy of these pages, which forbids it to load
// anything from elsewhere and to go to another address. A policy does not keep a browser from connecting to the host of
// <link rel=preconnect>, or of a link that is pressed, and a host's name can carry data. So the frame has neither.

interface Policy {
  createHTML(text: string): string;
}

// Trusted Types let no text become HTML in these pages; this one use is named.
const factory = (window as { trustedTypes?: { createPolicy(name: string, rules: Policy): Policy } }).trustedTypes;
const policy = factory?.createPolicy("output-frame", { createHTML: (text) => text }) ?? {
  createHTML: (text: string) => text,
};

const style = document.querySelector<HTMLMetaElement>('meta[name="frame-style"]')?.content ?? "";

// Elements that make a browser connect to a host. A template can become a shadow root, which has such elements.
const connecting = /<(\/?)(?:link|meta|base|a|area|template)(?=[\s/>])/gi;

// framed returns the document of a frame that shows HTML. The elements that connect become those of a name that HTML
// does not know and SVG knows as a group, so that what is in them is shown.
export function framed(html: string): string {
  const theme = document.documentElement.dataset["theme"];
  const head =
    `<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="${theme ?? "light dark"}">` +
    `<link rel="stylesheet" href="${style}">`;
  return policy.createHTML(`${head}<title>Output</title>\n${html.replace(connecting, "<$1g")}`);
}
