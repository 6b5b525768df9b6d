/** The table of limit keys. No event reports their use, so the page asks again while it is visible. */
import { useEffect } from 'preact/hooks';
import type { RateLimitList, RateLimitStatus } from '../../../contract/rate-limits';
import type { Action } from '../../components/actions';
import { FormDialog, SelectField, TextField, textIn } from '../../components/form';
import { Empty } from '../../components/page';
import { Collection, type Column, column, countColumn, textColumn } from '../../components/table';
import { Badge, Bar, Count, Names, None, QueueLink, Time } from '../../components/text';
import { ApiFailure, api, can, useResource } from '../../core/api';
import { askAndAct } from '../../core/dialogs';
import { number, span } from '../../core/format';
import { paused } from '../../core/live';
import { openAside, pageNumber, query, segment } from '../../core/router';
import './limits.css';

const PER_PAGE = 100;
const EVERY_MS = 5_000;

type KeyList = Pick<RateLimitList, 'items' | 'total'>;

/** Those whose key has the text in it; one that is named in full is found however many there are. */
async function load(queue: string | undefined, key: string, page: number, signal: AbortSignal): Promise<KeyList> {
  const all = await api.get<KeyList>('rate-limits', { queue, page, per_page: PER_PAGE }, signal);
  if (key === '') return all;
  const items = all.items.filter((item) => item.key.includes(key));
  if (items.length > 0 || all.total <= PER_PAGE) return { items, total: items.length };
  try {
    return { items: [await api.get<RateLimitStatus>(`rate-limits/${segment(key)}`, { queue }, signal)], total: 1 };
  } catch (error) {
    if (error instanceof ApiFailure && error.status < 500) return { items: [], total: 0 };
    throw error;
  }
}

/** @param queue only keys that jobs of this queue count under */
export function LimitKeys({ queue }: { queue?: string }) {
  const [page, key] = [pageNumber(), queue === undefined ? query('key').trim() : ''];
  const keys = useResource((signal) => load(queue, key, page, signal), [queue, page, key]);
  useEffect(() => {
    const look = () => document.visibilityState === 'visible' && !paused.value && keys.reload();
    const timer = setInterval(look, EVERY_MS);
    document.addEventListener('visibilitychange', look);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', look);
    };
  }, [keys.reload]);
  return (
    <Collection
      of={keys}
      label="Limit keys"
      rowKey={({ key: name }) => name}
      columns={COLUMNS}
      actions={can('data:write') && ACTIONS}
      perPage={PER_PAGE}
      unmatched={key !== '' && 'No matching keys'}
      empty={
        <Empty icon="limits" title="No limit keys">
          A key appears with the first job that uses it:{' '}
          <code>{'"rate_limit": {"key": "stripe", "concurrency": 5}'}</code>.
        </Empty>
      }
    >
      {({ items }) => {
        const name = query('override');
        const shown = items.find((item) => item.key === name);
        return can('data:write') && name !== '' && <OverrideDialog {...{ name, shown, onDone: keys.reload }} />;
      }}
    </Collection>
  );
}

function remove({ key }: RateLimitStatus): Promise<boolean> {
  const text = 'The limits set by its jobs apply again in all queues.';
  const question = { title: `Remove the override of ${key}?`, text, action: 'Remove the override' };
  const work = () => api.del(`rate-limits/${segment(key)}/override`);
  return askAndAct(question, work, `${key} has its own limits again.`);
}

const ACTIONS: readonly Action<RateLimitStatus>[] = [
  { label: 'Override', key: ['o', 'Override the limits'], run: ({ key }) => openAside({ override: key }) },
  {
    label: 'Remove',
    ...{ key: ['u', 'Remove the override'], run: remove },
    isFor: ({ override }) => override !== undefined && override !== null,
  },
];

const COLUMNS: readonly Column<RateLimitStatus>[] = [
  textColumn('key', 'Key'),
  countColumn('active', 'Running', (row) => (
    <Use used={row.active} most={row.override?.concurrency ?? row.concurrency} label={`${row.key}, running`} />
  )),
  column('starts', 'Starts', { end: true }, (row) => {
    const { limit, period } = { ...row, ...row.override };
    if (limit === undefined) return <None />;
    const of = ` in ${inPeriod(period)}${row.throttled ? ', evenly' : ''}`;
    return <Use used={row.current_count} most={limit} of={of} label={`${row.key}, starts`} />;
  }),
  countColumn('waiting', 'Waiting'),
  column('queues', 'Queues', { wide: true }, ({ queues }) => (
    <>
      <Names of={queues.slice(0, 3).map(({ queue }) => queue)} show={(name) => <QueueLink name={name} />} />
      {queues.length > 3 && <span class="faint"> and {number(queues.length - 3)} more</span>}
    </>
  )),
  column('override', 'Override', ({ override }) => <Override of={override} />),
];

const inPeriod = (period: string | undefined): string => (period === undefined ? 'its period' : span(period));

/** How much of a limit is used. @param of what the limit holds in */
function Use(props: { used: number; most: number | undefined; of?: string; label: string }) {
  const { used, most, of = '', label } = props;
  return (
    <span class="limit-use">
      <span>
        <Count value={used} />
        {most !== undefined && (
          <span class="faint">
            {' '}
            / {number(most)}
            {of}
          </span>
        )}
      </span>
      {most !== undefined && <Bar value={most === 0 ? 1 : used / most} label={label} />}
    </span>
  );
}

function Override({ of: override }: { of: RateLimitStatus['override'] }) {
  if (!override) return <None />;
  const { concurrency, limit, period, expires_at } = override;
  const isStopped = concurrency === 0 || limit === 0;
  const parts = [
    concurrency !== undefined && `${number(concurrency)} at once`,
    limit !== undefined && `${number(limit)} in ${inPeriod(period)}`,
  ].filter(Boolean);
  return (
    <>
      <Badge look={[isStopped ? 'red' : 'amber']} text={isStopped ? 'stopped' : parts.join(', ')} />
      <small class="under">{expires_at ? <Time before="ends " at={expires_at} /> : 'until it is removed'}</small>
    </>
  );
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

function OverrideDialog(props: { name: string; shown: RateLimitStatus | undefined; onDone: () => void }) {
  const { name, shown, onDone } = props;
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
