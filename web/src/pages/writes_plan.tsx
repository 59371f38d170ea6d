import { asText, plural } from "../format";

interface Node {
  "Node Type"?: string;
  Operation?: string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Plan Rows"?: number;
  "Total Cost"?: number;
  Filter?: string;
  "Index Cond"?: string;
  Plans?: Node[];
}

// Plan shows PostgreSQL's plan as a tree, or as it is if it has another form.
export function Plan({ of }: { of: unknown }) {
  const root = Array.isArray(of) ? (of[0] as { Plan?: Node } | undefined)?.Plan : (of as { Plan?: Node }).Plan;
  if (!root) return <pre class="text">{asText(of)}</pre>;
  return (
    <ul class="plan">
      <PlanNode of={root} />
    </ul>
  );
}

function PlanNode({ of: node }: { of: Node }) {
  const condition = node["Index Cond"] ?? node["Filter"];
  return (
    <li>
      <strong>{node["Operation"] ?? node["Node Type"]}</strong>
      {node["Operation"] && <span class="muted"> {node["Node Type"]}</span>}
      {node["Relation Name"] && (
        <>
          {" "}
          on <code>{node["Relation Name"]}</code>
        </>
      )}
      {node["Index Name"] && (
        <>
          {" "}
          by <code>{node["Index Name"]}</code>
        </>
      )}
      {/* PostgreSQL counts the rows that a node returns: one that changes rows returns none. */}
      <span class="muted">
        {" "}
        {node["Node Type"] !== "ModifyTable" && <>about {plural(node["Plan Rows"] ?? 0, "row")}, </>}cost{" "}
        {node["Total Cost"]}
      </span>
      {condition && (
        <div>
          <code>{condition}</code>
        </div>
      )}
      {node["Plans"] && (
        <ul>
          {node["Plans"].map((child, index) => (
            <PlanNode key={index} of={child} />
          ))}
        </ul>
      )}
    </li>
  );
}
