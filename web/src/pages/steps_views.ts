import { get } from "../api/client";
import type { StepView } from "../api/records";

const maxViews = 300;

// StepViews loads the views of steps and keeps those that were shown last. A fast slider asks for steps that nobody
// will see, so only the newest request of each kind runs.
export class StepViews {
  private readonly views = new Map<number, StepView>();
  private request = new AbortController();

  constructor(private readonly path: string) {}

  // load returns the view of a step and that of the step before, which tells what changed. It rejects with an
  // AbortError when it is called again meanwhile.
  async load(step: number): Promise<{ view: StepView; before: StepView | undefined }> {
    this.request.abort();
    const { signal } = (this.request = new AbortController());
    const [view, before] = await Promise.all([this.one(step, signal), step > 1 ? this.one(step - 1, signal) : undefined]);
    signal.throwIfAborted();
    return { view, before };
  }

  stop(): void {
    this.request.abort();
  }

  private async one(step: number, signal: AbortSignal): Promise<StepView> {
    const known = this.views.get(step);
    if (known) {
      this.views.delete(step); // it becomes the newest
      this.views.set(step, known);
      return known;
    }
    const view = await get<StepView>(`${this.path}/steps/${step}`, {}, signal);
    this.views.set(step, view);
    if (this.views.size > maxViews) this.views.delete(this.views.keys().next().value!);
    return view;
  }
}
