import { number } from '../core/format';
import { Button } from './button';

export function Bar({ value, label }: { value: number; label: string }) {
  return <progress value={Math.max(0, Math.min(1, value))} aria-label={label} />;
}

export interface OperationProgressProps {
  label: string;
  done: number;
  /** Undefined while it is not known. */
  total: number | undefined;
  failed?: number;
  /** Undefined: it cannot be stopped, or is over. */
  onAbort?: (() => void) | undefined;
}

export function OperationProgress({ label, done, total, failed = 0, onAbort }: OperationProgressProps) {
  return (
    <div class="operation" role="status">
      <div>
        <strong>{label}</strong>
        <span>
          {number(done)}
          {total !== undefined && ` of ${number(total)}`}
          {failed > 0 && <span class="red"> · {number(failed)} failed</span>}
        </span>
        {onAbort && <Button label="Stop" onClick={onAbort} />}
      </div>
      <Bar value={total ? done / total : 0} label={label} />
    </div>
  );
}
