/** Acts on many jobs from one dialog: preview, question, progress, result. Closing the dialog stops nothing. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Operation } from '../../contract/bulk';
import type { OperationPreview } from '../../contract/common';
import { type ApiFailure, api, asFailure } from '../core/api';
import { failed, toast } from '../core/dialogs';
import { counted, number } from '../core/format';
import { Button } from './button';
import { Confirm, Dialog } from './overlays';
import { Failure, Skeleton } from './page';
import { Bar, StateBadge } from './text';
import './operation.css';

/** @property left chosen jobs that are skipped, as their state does not allow the operation */
export type Preview = Omit<OperationPreview, 'dry_run' | 'action' | 'searched'> & { left?: number };

export type OperationStatus = Pick<Operation, 'completed' | 'succeeded' | 'skipped' | 'failed'> &
  Partial<Pick<Operation, 'operation_id' | 'aborted' | 'errors'>>;

export interface StartedOperation {
  /** "Retry", "Delete": with the number of jobs after it, the title and the button. */
  verb: string;
  doing: string;
  done: string;
  text: string;
  /** It cannot be undone: a text must be typed, by default the number. */
  danger?: boolean;
  typed?: string;
  preview: () => Promise<Preview>;
  /** @param key makes repeating it harmless */
  begin: (key: string) => Promise<OperationStatus>;
}

/** @returns what asks about an operation and runs it, and its dialog while it is open @param onDone follows a change */
export function useOperation(onDone: () => void): [begin: (operation: StartedOperation) => void, ComponentChildren] {
  const [operation, setOperation] = useState<StartedOperation>();
  const close = () => setOperation(undefined);
  return [setOperation, operation && <OperationDialog of={operation} onClose={close} onDone={onDone} />];
}

function OperationDialog(props: { of: StartedOperation; onClose: () => void; onDone: () => void }) {
  const { of: operation, onClose, onDone } = props;
  const [preview, setPreview] = useState<Preview>();
  const [outcome, setOutcome] = useState<OperationStatus>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiFailure>();
  const closed = useRef(false);
  const key = useRef(`ui-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`);
  useEffect(() => {
    operation.preview().then(setPreview, (thrown) => setError(asFailure(thrown)));
    return () => {
      closed.current = true;
    };
  }, []);

  const run = async () => {
    setBusy(true);
    setError(undefined);
    try {
      let status = await operation.begin(key.current);
      while (!status.completed && status.operation_id !== undefined && !closed.current) {
        setOutcome(status);
        status = await api.get<OperationStatus>(`admin/operations/${status.operation_id}`, { wait: 1 });
      }
      if (!status.completed) return;
      onDone();
      const asForeseen = status.failed === 0 && status.skipped <= (preview?.left ?? 0);
      if (closed.current || (asForeseen && !status.aborted)) {
        toast(`${jobs(status.succeeded)} ${operation.done}.`);
        onClose();
      } else setOutcome(status);
    } catch (thrown) {
      setError(asFailure(thrown));
    } finally {
      setBusy(false);
    }
  };

  const title = preview ? `${operation.verb} ${matching(preview)}?` : `${operation.verb} jobs?`;
  return (
    <Dialog title={outcome ? operation.verb : title} onClose={onClose}>
      {error && <Failure error={error} />}
      {outcome ? (
        <Running {...{ operation, preview, outcome, onClose }} />
      ) : preview ? (
        <Asked {...{ operation, preview, busy, onClose, run }} />
      ) : (
        !error && <Skeleton rows={3} />
      )}
    </Dialog>
  );
}

const jobs = (count: number): string => counted(count, 'job');
const matching = ({ matched, matched_is_exact }: Preview): string =>
  `${matched_is_exact ? '' : 'at least '}${jobs(matched)}`;

interface AskedProps {
  operation: StartedOperation;
  preview: Preview;
  busy: boolean;
  onClose: () => void;
  run: () => void;
}

function Asked({ operation, preview, busy, onClose, run }: AskedProps) {
  const { matched, by_state, by_queue, left = 0 } = preview;
  const queues = Object.entries(by_queue).sort(([, a], [, b]) => b - a);
  const isEmpty = matched === 0;
  return (
    <Confirm
      action={busy ? 'Working…' : `${operation.verb} ${matching(preview)}`}
      danger={operation.danger}
      disabled={busy || isEmpty}
      typed={operation.danger && !isEmpty ? (operation.typed ?? String(matched)) : undefined}
      onAnswer={(yes) => (yes ? run() : onClose())}
    >
      <p>{isEmpty ? 'No job is in a state that allows this.' : operation.text}</p>
      <ul class="preview">
        {Object.entries(by_state).map(([state, count]) => (
          <li key={state}>
            <StateBadge state={state} /> {number(count)}
          </li>
        ))}
      </ul>
      {queues.length > 0 && (
        <p class="faint">
          In {queues.length === 1 ? 'queue ' : `${number(queues.length)} queues: `}
          {queues
            .slice(0, 5)
            .map(([name, count]) => (queues.length === 1 ? name : `${name} (${number(count)})`))
            .join(', ')}
          {queues.length > 5 && ', …'}
        </p>
      )}
      {left > 0 && <p class="faint">{jobs(left)} will be skipped: their state does not allow this.</p>}
    </Confirm>
  );
}

interface RunningProps extends Pick<AskedProps, 'operation' | 'onClose'> {
  preview: Preview | undefined;
  outcome: OperationStatus;
}

function Running({ operation, preview, outcome, onClose }: RunningProps) {
  const { operation_id: id, completed, aborted, succeeded, skipped, failed: wrong, errors = [] } = outcome;
  const [stopping, setStopping] = useState(false);
  const abort = async () => {
    setStopping(true);
    // The question after its progress, which continues, is answered with what came of it.
    await api.post(`admin/operations/${id}/abort`).catch(failed);
  };
  const doing = stopping ? 'Stopping' : operation.doing;
  const done = succeeded + skipped + wrong;
  const total = preview?.matched_is_exact ? Math.max(preview.matched, done) : undefined;
  return (
    <>
      {completed ? (
        <p role="status">
          {aborted ? 'Stopped: ' : ''}
          {jobs(succeeded)} {operation.done}
          {skipped > 0 && `, ${number(skipped)} skipped`}
          {wrong > 0 && `, ${number(wrong)} failed`}.{aborted && ' Completed changes stay.'}
        </p>
      ) : (
        <div class="operation" role="status">
          <div>
            <strong>{doing}</strong>
            <span>
              {number(done)}
              {total !== undefined && ` of ${number(total)}`}
              {wrong > 0 && <span class="red"> · {number(wrong)} failed</span>}
            </span>
            {id !== undefined && !stopping && <Button label="Stop" onClick={abort} />}
          </div>
          <Bar value={total ? done / total : 0} label={doing} />
        </div>
      )}
      {errors.length > 0 && (
        <ul class="mono faint">
          {errors.slice(0, 10).map(({ job_id, error }) => (
            <li key={job_id}>
              {job_id}: {error}
            </li>
          ))}
        </ul>
      )}
      <div class="actions operation-end">
        <Button label={completed ? 'Close' : 'Continue in the background'} onClick={onClose} />
      </div>
    </>
  );
}
