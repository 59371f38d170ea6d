// What the logic of the pages needs of a browser, for tests without a document. It is there in an instant; happy-dom
// takes a second for each file.
if (!("window" in globalThis)) {
  const page = Object.assign(new EventTarget(), { hidden: false });
  Object.assign(globalThis, {
    window: globalThis,
    document: page,
    location: new URL("http://glasshouse.test/ui/"),
    requestAnimationFrame: (draw: FrameRequestCallback) => setTimeout(() => draw(Date.now()), 0),
  });
  const events = new EventTarget();
  globalThis.addEventListener ??= events.addEventListener.bind(events);
}
