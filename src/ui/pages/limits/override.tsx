/** Puts other limits in the place of those of a key. */
import type { RateLimitStatus } from '../../../contract/rate-limits';
import { FormDialog, SelectField, TextField, textIn } from '../../components/form';
import { api } from '../../core/api';
import { segment } from '../../core/base';
import { number, span } from '../../core/format';
import { openAside } from '../../core/router';

export interface OverrideProps {
  name: string;
  /** As the list has it, when it does. */
  shown: RateLimitStatus | undefined;
  onDone: () => void;
}

const ENDS = {
  '': 'when it is removed',
  '+PT5M': 'in 5 minutes',
  '+PT15M': 'in 15 minutes',
  '+PT1H': 'in an hour',
  '+PT8H': 'in 8 hours',
  '+P1D': 'in a day',
};

const close = () => openAside({ override: null });

export function OverrideDialog({ name, shown, onDone }: OverrideProps) {
  const submit = async (form: FormData) => {
    const given = ['concurrency', 'limit', 'period', 'expires_at'].flatMap((field) => {
      const value = textIn(form, field);
      return value === '' ? [] : [[field, /^\d+$/.test(value) && field !== 'period' ? Number(value) : value]];
    });
    await api.put(`rate-limits/${segment(name)}`, Object.fromEntries(given));
    return `${name} has new limits.`;
  };
  const { concurrency, limit, period } = { ...shown, ...shown?.override };
  const now = (value: number | undefined) => (value === undefined ? 'not limited' : `now ${number(value)}`);
  const per = period === undefined ? 'not limited' : `now ${span(period)}`;
  return (
    <FormDialog title={`Override ${name}`} action="Override" onSubmit={submit} onDone={onDone} onClose={close}>
      <p class="note">It applies to all queues at once, also to waiting jobs. 0 stops the key's jobs.</p>
      <TextField name="concurrency" label="Running at once" hint={now(concurrency)} inputMode="numeric" />
      <TextField name="limit" label="Starts" hint={now(limit)} inputMode="numeric" />
      <TextField name="period" label="Per" hint={`${per}; second, minute, hour, or a duration such as 10s`} />
      <SelectField name="expires_at" label="Ends" options={ENDS} />
    </FormDialog>
  );
}
