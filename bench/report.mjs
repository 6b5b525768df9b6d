/** The results as text. */

/** A table with a title; numbers to the right. */
export function table(title, columns, rows) {
  const text = (value) =>
    typeof value === 'number' ? value.toLocaleString('en-US', { maximumFractionDigits: 3 }) : String(value ?? '');
  const width = (column) => Math.max(column.length, ...rows.map((row) => text(row[column]).length));
  const pad = (value, column) =>
    rows.some((row) => typeof row[column] === 'number') ? value.padStart(width(column)) : value.padEnd(width(column));
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [
    `### ${title}`,
    '',
    line(columns.map((column) => pad(column, column))),
    line(columns.map((column) => '-'.repeat(width(column)))),
    ...rows.map((row) => line(columns.map((column) => pad(text(row[column]), column)))),
    '',
  ].join('\n');
}

/** A table in Markdown with a title: text to the left in the first column, all others to the right. */
export function markdown(title, columns, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const rule = columns.map((_, n) => (n === 0 ? '---' : '---:'));
  return [`### ${title}`, '', line(columns), line(rule), ...rows.map(line), ''].join('\n');
}
