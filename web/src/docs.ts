import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle.js";
import "swagger-ui-dist/swagger-ui.css";
import "../styles/docs.css";

// The page at /docs shows the OpenAPI document. Who has signed in can try the routes at once, others after they have
// given a key. The document names no other host, and nothing is asked from one.
const chosen = document.documentElement.dataset["theme"];
const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.classList.toggle("dark-mode", dark);

// A newcomer needs these operations first, and the last ones never. The others are in the order of their paths.
const firstOperations = [
  "quickExecuteCode",
  "executeCode",
  "getExecution",
  "listExecutions",
  "followExecutions",
  "cancelExecution",
  "createSandbox",
  "getSandboxStatus",
  "deleteSandbox",
  "queryDatabase",
  "getDatabaseSchema",
];
const lastOperations = ["deleteAllSandboxes", "eraseExecution", "eraseUser"];

interface Operation {
  getIn: (path: string[]) => string;
}

function placeOf(operation: Operation): number {
  const id = operation.getIn(["operation", "operationId"]);
  const first = firstOperations.indexOf(id);
  return first >= 0 ? first : firstOperations.length + 1 + lastOperations.indexOf(id);
}

function compare(a: Operation, b: Operation): number {
  return placeOf(a) - placeOf(b) || a.getIn(["path"]).localeCompare(b.getIn(["path"]));
}

SwaggerUI({
  url: "/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  docExpansion: "list",
  filter: true,
  operationsSorter: compare,
  displayOperationId: true,
  tryItOutEnabled: true,
  persistAuthorization: false,
  validatorUrl: null,
});
