/** Puts other limits in the place of those of a key. */
import type { RateLimitStatus } from '../../../contract/rate-limits';
import { errorAt, Field, Form, textIn } from '../../components/form';
import { Dialog } from '../../components/overlays';
import { api } from '../../core/api';
import { segment } from '../../core/base';
import { toast } from '../../core/dialogs';
import { number, span } from '../../core/format';

export interface OverrideProps {
  name: string;
  /** As the list has it, when it does. */
  shown: RateLimitStatus | undefined;
  onClose: () => void;
  onDone: () => void;
}

const ENDS = [
  ['', 'when it is removed'],
  ['+PT5M', 'in 5 minutes'],
  ['+PT15M', 'in 15 minutes'],
  ['+PT1H', 'in an hour'],
  ['+PT8H', 'in 8 hours'],
  ['+P1D', 'in a day'],
] as const;

export function OverrideDialog({ name, shown, onClose, onDone }: OverrideProps) {
  const submit = async (form: FormData) => {
    const text = (field: string) => textIn(form, field);
    const numeric = (field: string) => (/^\d+$/.test(text(field)) ? Number(text(field)) : text(field));
    await api.put(`rate-limits/${segment(name)}`, {
      ...(text('concurrency') !== '' && { concurrency: numeric('concurrency') }),
      ...(text('limit') !== '' && { limit: numeric('limit') }),
      ...(text('period') !== '' && { period: text('period') }),
      ...(text('expires_at') !== '' && { expires_at: text('expires_at') }),
    });
    toast(`${name} has new limits.`);
    onDone();
    onClose();
  };
  const { concurrency, limit, period } = { ...shown, ...shown?.override };
  const now = (value: number | undefined) => (value === undefined ? 'not limited' : `now ${number(value)}`);
  return (
    <Dialog title={`Override ${name}`} onClose={onClose}>
      <Form action="Override" onSubmit={submit} onCancel={onClose}>
        {(error) => (
          <>
            <p class="note">It applies to all queues at once, also to waiting jobs. 0 stops the key's jobs.</p>
            <Field label="Running at once" hint={now(concurrency)} error={errorAt(error, 'concurrency')}>
              <input name="concurrency" inputMode="numeric" autocomplete="off" />
            </Field>
            <Field label="Starts" hint={now(limit)} error={errorAt(error, 'limit')}>
              <input name="limit" inputMode="numeric" autocomplete="off" />
            </Field>
            <Field
              label="Per"
              hint={`${period === undefined ? 'not limited' : `now ${span(period)}`}; second, minute, hour, or a duration such as 10s`}
              error={errorAt(error, 'period')}
            >
              <input name="period" autocomplete="off" />
            </Field>
            <Field label="Ends" error={errorAt(error, 'expires_at')}>
              <select name="expires_at">
                {ENDS.map(([value, label]) => (
                  <option key={value} value={value}>
                    {label}
                  </option>
                ))}
              </select>
            </Field>
          </>
        )}
      </Form>
    </Dialog>
  );
}
