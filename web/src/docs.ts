import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle.js";
import "swagger-ui-dist/swagger-ui.css";
import "../styles/docs.css";

// The page at /docs shows the OpenAPI document. Who has signed in can try the routes at once, others after they have
// given a key. The document names no other host, and nothing is asked from one.
const chosen = document.documentElement.dataset["theme"];
const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.classList.toggle("dark-mode", dark);

SwaggerUI({
  url: "/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  docExpansion: "list",
  filter: true,
  displayOperationId: true,
  tryItOutEnabled: true,
  persistAuthorization: false,
  validatorUrl: null,
});
