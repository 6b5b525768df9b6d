import type { JobLogLine } from '../../../job/wire';
import { Badge, type Tone } from '../../components/badge';
import { JsonBrief } from '../../components/json';
import { SelectFilter } from '../../components/list';
import { Copy, Foreign } from '../../components/text';
import { timeOfDay } from '../../core/format';
import { query } from '../../core/router';

const LEVELS: Readonly<Record<JobLogLine['level'], Tone>> = {
  debug: 'neutral',
  info: 'blue',
  warn: 'amber',
  error: 'red',
};

/** Log lines; `?level=` leaves out those below. */
export function Log({ of: lines }: { of: readonly JobLogLine[] }) {
  const names = Object.keys(LEVELS) as JobLogLine['level'][];
  const least = names.indexOf(query('level') as JobLogLine['level']);
  const shown = lines.filter(({ level }) => names.indexOf(level) >= least);
  if (lines.length === 0) return <p class="faint">No log lines.</p>;
  return (
    <>
      <div class="log-head">
        <SelectFilter
          name="level"
          label="Minimum level"
          all="All levels"
          options={Object.fromEntries(names.slice(1).map((name) => [name, `${name} and above`]))}
          replace
        />
        <Copy text={shown.map(lineText).join('\n')} label="log" />
      </div>
      <ol class="log" aria-live="polite">
        {shown.map((line, index) => (
          <Line key={`${line.at} ${index}`} of={line} />
        ))}
        {shown.length === 0 && <li class="faint">No line has this level.</li>}
      </ol>
    </>
  );
}

function Line({ of: { at, level, message, fields } }: { of: JobLogLine }) {
  return (
    <li class={level}>
      <time dateTime={new Date(at).toISOString()}>{timeOfDay(at)}</time>
      <Badge look={[LEVELS[level] ?? 'neutral']} text={level} />
      <span>
        <Foreign>{message}</Foreign>
        {fields && (
          <>
            {' '}
            <JsonBrief value={fields} label="fields" />
          </>
        )}
      </span>
    </li>
  );
}

function lineText({ at, level, message, fields }: JobLogLine): string {
  return `${new Date(at).toISOString()} ${level} ${message}${fields ? ` ${JSON.stringify(fields)}` : ''}`;
}
