/** What a job writes to its output streams, one of them at a time, as it is written. */
import { useEffect, useState } from 'preact/hooks';
import type { JobStreams } from '../../../contract/streams';
import { SelectFilter } from '../../components/list';
import { Section } from '../../components/page';
import { Copy, Foreign } from '../../components/text';
import { useGet } from '../../core/api';
import { API, query, segment } from '../../core/router';
import type { Job } from './types';

/** While a job runs it may begin streams, which no event says: they are looked for at this interval, ms. */
const LOOK_MS = 5_000;
/** Characters that are shown of a stream: its end. */
const SHOWN = 100_000;

export function Output({ of: { id, state } }: { of: Job }) {
  const { data, reload } = useGet<JobStreams>(`jobs/${segment(id)}/streams`, {}, state);
  useEffect(() => {
    if (state !== 'active') return undefined;
    const timer = setInterval(reload, LOOK_MS);
    return () => clearInterval(timer);
  }, [state, reload]);
  const names = data?.streams.map(({ name }) => name) ?? [];
  const [first, ...others] = names;
  if (first === undefined) return null;
  const name = names.includes(query('stream')) ? query('stream') : first;
  const options = Object.fromEntries(others.map((other) => [other, other]));
  const choice = others.length > 0 && (
    <SelectFilter name="stream" label="Stream" all={first} options={options} replace />
  );
  return (
    <Section title="Output" actions={choice}>
      <Stream key={name} id={id} name={name} />
    </Section>
  );
}

function Stream({ id, name }: { id: string; name: string }) {
  const [text, setText] = useState('');
  useEffect(() => {
    const source = new EventSource(new URL(`jobs/${segment(id)}/streams/${segment(name)}`, API));
    source.addEventListener('chunk', ({ data }) => {
      const { chunk } = JSON.parse(data) as { chunk: unknown };
      setText((before) => before + (typeof chunk === 'string' ? chunk : `${JSON.stringify(chunk)}\n`));
    });
    source.addEventListener('reset', () => setText(''));
    source.addEventListener('end', () => source.close());
    return () => source.close();
  }, [id, name]);
  return (
    <div class="card">
      <div class="log-head">
        <span class="faint">{name}</span>
        <Copy text={text} label="output" />
      </div>
      {text.length > SHOWN && <p class="faint">Only the end is shown. Copy has all of it.</p>}
      <div class="output" aria-live="polite">
        <Foreign>{text.slice(-SHOWN)}</Foreign>
      </div>
    </div>
  );
}
