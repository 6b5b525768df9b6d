/** Shows progress: a bar redrawn in place on a terminal, a line every second elsewhere. */

const BAR_WIDTH = 30;
const LINE_INTERVAL_MS = 1_000;

const ENDED = ['completed', 'discarded', 'cancelled'];
const UNDER_WAY = ['active', 'retryable', 'available'];

/**
 * @param {Record<string, number>} counts jobs by state
 * @param {number} total
 * @returns {number} jobs that have ended, at most `total`
 */
export function endedOf(counts, total) {
  return Math.min(
    total,
    ENDED.reduce((sum, state) => sum + (counts[state] ?? 0), 0),
  );
}

/** One line with the counts. */
export function progressLine(counts, total, elapsedMs) {
  const ended = endedOf(counts, total);
  const filled = total === 0 ? BAR_WIDTH : Math.floor((ended / total) * BAR_WIDTH);
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled);
  const states = [...ENDED, ...UNDER_WAY].flatMap((state) => (counts[state] ? [`${counts[state]} ${state}`] : []));
  return `${bar} ${ended}/${total}  ${(elapsedMs / 1000).toFixed(1)} s  ${states.join(', ')}`;
}

/**
 * @param {{isTTY?: boolean, columns?: number, write: (text: string) => unknown}} stream
 * @returns {{show: (line: string, now: number) => void, end: (line: string) => void}} `now` in ms
 */
export function progressWriter(stream) {
  if (stream.isTTY) {
    const draw = (line) => stream.write(`\r\x1b[2K${line.slice(0, (stream.columns ?? 80) - 1)}`);
    return {
      show: draw,
      end: (line) => {
        draw(line);
        stream.write('\n');
      },
    };
  }
  let last = Number.NEGATIVE_INFINITY;
  return {
    show: (line, now) => {
      if (now - last < LINE_INTERVAL_MS) return;
      last = now;
      stream.write(`${line}\n`);
    },
    end: (line) => stream.write(`${line}\n`),
  };
}
