import type { ComponentChildren } from 'preact';
import type { JobStep } from '../../../job/wire';
import { Badge } from '../../components/badge';
import { Json, JsonBrief, JsonSection } from '../../components/json';
import { Section } from '../../components/page';
import { Foreign, Time } from '../../components/text';
import { number } from '../../core/format';
import type { Job } from './types';

export function Payload({ of: job }: { of: Job }) {
  const { args, meta, result, checkpoint, steps, progress_data: data } = job;
  const names = Object.keys(steps);
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
      {names.length > 0 && (
        <Section title="Steps">
          <Steps of={job} />
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

/** Steps that are shown at most; the rest is in the answer of the API. */
const MOST = 100;

function Steps({ of: { steps, waiting_for: waiting } }: { of: Job }) {
  const names = Object.keys(steps);
  return (
    <ol class="card steps">
      {names.slice(0, MOST).map((name) => (
        <li key={name}>
          <Foreign>{name}</Foreign>
          <StepState
            of={Object.getOwnPropertyDescriptor(steps, name)?.value as JobStep}
            awaits={waiting?.signal === name}
          />
        </li>
      ))}
      {names.length > MOST && <li class="faint">and {number(names.length - MOST)} more</li>}
    </ol>
  );
}

function StepState({ of: step, awaits }: { of: JobStep; awaits: boolean }): ComponentChildren {
  if ('result' in step) {
    return (
      <>
        <Badge look={['green', 'completed']} text="done" />
        <JsonBrief value={step.result} label="result of the step" />
      </>
    );
  }
  if ('error' in step) {
    return (
      <>
        <Badge look={['red', 'discarded']} text="failed" />
        <JsonBrief value={step.error} label="error of the step" />
      </>
    );
  }
  if (step.until !== undefined) {
    const text = awaits ? 'waits for the signal' : <Time before="sleeps, ends " at={step.until} />;
    return <Badge look={['neutral', 'waiting']} text={text} />;
  }
  if (step.signal) {
    return (
      <>
        <Badge look={['green', 'events']} text={<Time before="signal " at={step.signal.at} />} />
        <JsonBrief value={step.signal.payload} label="payload of the signal" />
      </>
    );
  }
  return <Badge look={['amber']} text="timed out" />;
}
