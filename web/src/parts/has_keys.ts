// hasKeys reports whether the person works with a pointer as precise as a mouse, and so most likely with a keyboard. Words
// about keys are of no use on a phone.
export const hasKeys = !window.matchMedia("(pointer: coarse)").matches;
