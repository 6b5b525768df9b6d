import { Json, JsonSection } from '../../components/json';
import { Section } from '../../components/page';
import { Time } from '../../components/text';
import { number } from '../../core/format';
import type { Job } from './types';

export function Payload({ of: job }: { of: Job }) {
  const { args, meta, result, checkpoint, progress_data: data } = job;
  return (
    <>
      <JsonSection title="Arguments" value={args} open={3} />
      <JsonSection title="Result" value={result} />
      {Object.keys(meta).length > 0 && <JsonSection title="Meta" value={meta} />}
      <JsonSection title="Progress data" value={data} />
      {checkpoint && (
        <Section title="Checkpoint" actions={<Saved sequence={checkpoint.sequence} at={checkpoint.created_at} />}>
          <Json value={checkpoint.state ?? checkpoint} label="checkpoint" open={2} />
        </Section>
      )}
    </>
  );
}

function Saved({ sequence, at }: { sequence: number; at: string }) {
  return (
    <span class="faint">
      no. {number(sequence)}, <Time at={at} />
    </span>
  );
}
