import { bytes } from "../format";
import { reportUnauthorized } from "./client";
import { Problem } from "./problem";

export interface UploadedFile {
  path: string;
  size: number;
  mime_type: string;
}

// UploadList has the uploads of a sandbox.
export interface UploadList {
  files: UploadedFile[];
  bytes: number;
  upload_max_bytes: number;
}

// uploadPath returns the path of one upload of a sandbox. A name may have folders.
export function uploadPath(sandbox: string, name: string): string {
  return `/sandbox/${encodeURIComponent(sandbox)}/files/${name.split("/").map(encodeURIComponent).join("/")}`;
}

// checkSize throws a Problem for a file that the service would refuse because of its size.
export function checkSize(file: File, max: number): void {
  if (file.size <= max) return;
  throw new Problem(
    413,
    "The file is too large",
    `${file.name} has ${bytes(file.size)}; the uploads of a session may have ${bytes(max)} ` +
      "(upload_max_bytes). Upload a part of it, or create a sandbox with a larger limit by the API",
  );
}

// upload sends a file to a sandbox. It throws a Problem if the file is not stored, and lets the session know of a key
// that is no longer valid. It uses XMLHttpRequest because fetch tells no progress of what is sent.
export function upload(sandbox: string, file: File, onProgress: (sent: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", uploadPath(sandbox, file.name));
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onerror = () =>
      reject(
        new Problem(
          0,
          "The file could not be sent",
          `${file.name} could not be sent: the connection failed, or this is a folder or a file that cannot be read`,
        ),
      );
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) return resolve();
      const problem = problemOf(request);
      if (problem.status === 401) reportUnauthorized(problem);
      reject(problem);
    };
    request.send(file);
  });
}

function problemOf(request: XMLHttpRequest): Problem {
  const fallback = `The service answered ${request.status}.`;
  try {
    const body = JSON.parse(request.responseText) as { title?: string; detail?: string };
    return new Problem(request.status, body.title ?? fallback, body.detail ?? "");
  } catch {
    return new Problem(request.status, fallback, "");
  }
}
