// What is loaded when somebody asks about a statement.

export { StagesView } from "./view";
export { RowsBehind } from "./why_cell";
