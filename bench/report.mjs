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

/**
 * A section of Markdown with a table as a block of text, which stays readable however many columns there are. Text stands
 * to the left in the first column, all others to the right.
 * @param rows cells; a row of one cell alone is a heading of those below it
 */
export function block(title, columns, rows) {
  const indent = rows.some((cells) => cells.length === 1) ? '  ' : '';
  const lines = [columns, ...rows.map(([first, ...rest]) => [rest.length > 0 ? indent + first : first, ...rest])];
  const widths = columns.map((_, n) => Math.max(...lines.map((cells) => (cells.length > 1 ? cells[n].length : 0))));
  const text = lines.map(([first, ...rest]) => {
    const numbers = rest.map((cell, n) => cell.padStart(widths[n + 1]));
    return [numbers.length > 0 ? first.padEnd(widths[0]) : first, ...numbers].join('  ');
  });
  return [`### ${title}`, '', '```text', ...text, '```', ''].join('\n');
}

/** An item of a list in Markdown, in lines of at most 100 characters. */
export function item(text) {
  const lines = ['-'];
  for (const word of text.split(' ')) {
    if (`${lines.at(-1)} ${word}`.length > 100) lines.push(' ');
    lines.push(`${lines.pop()} ${word}`);
  }
  return lines.join('\n');
}
