// Charts are plain SVG, without a library. Their text is next to them, where a reader of the screen finds it.

const width = 100;
const height = 36;

interface Part {
  values: number[]; // one for each bar
  class: string;
}

// Bars is a chart of bars, whose parts stand on each other.
export function Bars({ parts, titles, label }: { parts: Part[]; titles: string[]; label: string }) {
  const sums = titles.map((_, n) => parts.reduce((sum, { values }) => sum + values[n]!, 0));
  const most = Math.max(...sums, 1e-9);
  const step = width / Math.max(1, titles.length);
  const gap = Math.min(step * 0.2, 0.6);
  return (
    <svg class="bars" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {titles.map((title, n) => {
        let below = 0;
        return (
          <g key={title}>
            <title>{title}</title>
            <rect class="ground" x={n * step} y={0} width={step} height={height} />
            {parts.map((part) => {
              const size = (part.values[n]! / most) * (height - 1);
              below += size;
              return size > 0 ? (
                <rect
                  key={part.class}
                  class={part.class}
                  x={n * step + gap / 2}
                  y={height - below}
                  width={step - gap}
                  height={Math.max(size, 0.6)}
                />
              ) : null;
            })}
          </g>
        );
      })}
    </svg>
  );
}
