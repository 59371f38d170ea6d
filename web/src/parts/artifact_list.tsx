import type { Artifact } from "../api/records";
import { bytes } from "../format";
import { Failure } from "./feedback";
import { useLoaded } from "./loaded";

const maxThumbnail = 2 * 1024 ** 2; // bytes

// ArtifactList shows the newest version of each file that code of a sandbox wrote. The routes of the sandbox begin with path;
// "" is none.
export function ArtifactList({ path, version }: { path: string; version: number }) {
  const { answer, problem, reload } = useLoaded<{ artifacts: Artifact[] }>(path && `${path}/artifacts`, [version]);
  if (problem && problem.status !== 404) return <Failure problem={problem} retry={reload} />;
  if (!answer || answer.artifacts.length === 0) {
    return (
      <p class="muted body">
        <span>
          None yet. A file that code writes to <code>/session/artifacts</code> is kept, with a link here.
        </span>
      </p>
    );
  }
  return (
    <ul class="entries" aria-label="Artifacts">
      {answer.artifacts.map((artifact) => (
        <li key={artifact.artifact_id}>
          {artifact.mime_type.startsWith("image/") && artifact.size <= maxThumbnail && (
            <img class="thumbnail" src={artifact.url} alt="" loading="lazy" width="48" height="48" />
          )}
          <div class="entry">
            <a href={artifact.url} download>
              {artifact.path}
            </a>{" "}
            <span class="muted">{bytes(artifact.size)}</span>
          </div>
        </li>
      ))}
    </ul>
  );
}
