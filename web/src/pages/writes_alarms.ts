import type { PendingWrite } from "../api/records";
import { count } from "../format";

export const largeWrite = 1000; // rows; the service has the same limit

// alarmTexts says what an admin should not miss of a write. counted is the exact number of rows, if it is known.
export function alarmTexts(write: Pick<PendingWrite, "alarms" | "row_estimate">, counted?: number): string[] {
  const texts: string[] = [];
  if (write.alarms?.includes("no-condition")) texts.push("No WHERE: it changes every row of the table.");
  if (counted !== undefined ? counted >= largeWrite : write.alarms?.includes("many-rows"))
    texts.push(
      counted !== undefined
        ? `It changes ${count(counted)} rows.`
        : `It changes many rows: about ${count(write.row_estimate)}.`,
    );
  return texts;
}
