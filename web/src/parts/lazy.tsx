import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Problem } from "../api/problem";
import { Page } from "../shell";
import { Failure, Loading } from "./feedback";

// lazily returns a page that is loaded when it is opened, so that the first page does not wait for it.
export function lazily<P extends object>(
  title: string,
  load: () => Promise<FunctionComponent<P>>,
): FunctionComponent<P> {
  let loaded: FunctionComponent<P> | undefined;
  return function Lazy(props: P) {
    const [Shown, setShown] = useState<FunctionComponent<P> | undefined>(() => loaded);
    const [problem, setProblem] = useState<Problem>();
    const [attempt, setAttempt] = useState(0);
    useEffect(() => {
      if (loaded) return;
      setProblem(undefined);
      load().then(
        (page) => setShown(() => (loaded = page)),
        (thrown: unknown) => setProblem(Problem.from(thrown)),
      );
    }, [attempt]);
    if (Shown) return <Shown {...props} />;
    return (
      <Page title={title}>
        {problem ? <Failure problem={problem} retry={() => setAttempt(attempt + 1)} /> : <Loading what="the page" />}
      </Page>
    );
  };
}
