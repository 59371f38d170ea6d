import { get } from "../api/client";
import { isAborted } from "../api/problem";
import type { StepView } from "../api/records";

const maxViews = 2000;

// A window of views takes hardly longer than one: the service decodes the steps in order.
const windowBefore = 8;
const windowLimit = 24;

interface Window {
  steps: StepView[];
  next?: number; // the step behind the window, if that is smaller than asked for
}

export interface ShownStep {
  view: StepView;
  before: StepView | undefined; // of the step before, which tells what changed
}

// StepViews loads views in windows around the wanted step. At most one request runs. When it ends, its step is shown,
// even if another step is wanted by then, so that the values follow a moving slider.
export class StepViews {
  private readonly views = new Map<number, StepView>();
  private readonly missingSteps = new Set<number>();
  private readonly request = new AbortController();
  private target = 0;
  private isBusy = false;

  constructor(
    private readonly path: string,
    private readonly show: (step: number, shown: ShownStep | undefined) => void, // undefined: was not recorded
    private readonly fail: (thrown: unknown) => void,
  ) {}

  want(step: number): void {
    if (step === this.target) return;
    this.target = step;
    if (this.deliver(step)) {
      // The neighbours are probably next.
      if (!this.has(step + 4) || !this.has(Math.max(1, step - 4))) void this.load(step);
    } else {
      void this.load(step);
    }
  }

  stop(): void {
    this.request.abort();
  }

  private has(step: number): boolean {
    return this.views.has(step) || this.missingSteps.has(step);
  }

  // isReady reports whether a step can be shown, which needs the step before it, too.
  private isReady(step: number): boolean {
    return this.has(step) && (step <= 1 || this.has(step - 1));
  }

  private deliver(step: number): boolean {
    if (!this.isReady(step)) return false;
    const view = this.views.get(step);
    this.show(step, view && { view, before: this.views.get(step - 1) });
    return true;
  }

  private async load(step: number, before = windowBefore): Promise<void> {
    if (this.isBusy) return;
    this.isBusy = true;
    const isShown = this.isReady(step);
    const from = Math.max(1, step - before);
    try {
      const { steps, next } = await get<Window>(
        `${this.path}/views`,
        { from, limit: windowLimit },
        this.request.signal,
      );
      const loaded = new Map(steps.map((view) => [view.step, view]));
      for (let n = from; n < (next || from + windowLimit); n++) {
        const view = loaded.get(n);
        this.views.delete(n); // the newest are last, and are kept longest
        if (view) this.views.set(n, view);
        else this.missingSteps.add(n);
      }
      for (const old of this.views.keys()) {
        if (this.views.size <= maxViews) break;
        this.views.delete(old);
      }
      this.isBusy = false;
      if (!isShown || this.target !== step) this.deliver(this.isReady(this.target) ? this.target : step);
      // Large steps may end the window before the wanted one: another begins right before it, and then with it.
      const isCut = !this.isReady(step) && before > 0;
      if (!this.isReady(this.target))
        void this.load(this.target, isCut && this.target === step ? (before > 1 ? 1 : 0) : undefined);
    } catch (thrown) {
      this.isBusy = false;
      if (!isAborted(thrown)) this.fail(thrown);
    }
  }
}
