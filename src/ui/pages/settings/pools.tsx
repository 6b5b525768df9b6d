/** Pools: queues from which workers take in turn, each its portion. */
import { useState } from 'preact/hooks';
import type { PoolList, PoolStrategy, QueuePool, QueueShare, SchedulingStats } from '../../../contract/pools';
import { NewButton } from '../../components/actions';
import { FormDialog, SelectField, TextField, textIn } from '../../components/form';
import { Empty } from '../../components/page';
import { Collection, type Column, column, countColumn, textColumn } from '../../components/table';
import { Badge, Count, Link, QueueLink } from '../../components/text';
import { api, can, useResource } from '../../core/api';
import { askAndAct } from '../../core/dialogs';
import { number } from '../../core/format';
import { aside, segment } from '../../core/router';

const STRATEGIES: Readonly<Record<PoolStrategy, string>> = {
  'round-robin': 'in turn, equally',
  weighted: 'in turn, by weight',
  strict: 'strictly in the order listed',
};

const pathOf = (name: string) => `admin/pools/${segment(name)}`;

export function Pools() {
  const pools = useResource(async (signal) => {
    const [{ items }, { queues }] = await Promise.all([
      api.get<PoolList>('admin/pools', { per_page: 100 }, signal),
      api.get<SchedulingStats>('admin/scheduling/stats', {}, signal),
    ]);
    return { items, given: queues };
  }, []);
  const mayWrite = can('admin:write');
  return (
    <>
      <div class="bar">
        <p class="faint">
          A worker fetches from <code>pool:NAME</code>, and gets jobs of its queues in turn.
        </p>
        <NewButton label="New pool" edit=":new" />
      </div>
      <Collection
        of={pools}
        label="Pools"
        columns={columns(pools.data?.given ?? [])}
        rowKey={({ name }) => name}
        nameOf={nameOf}
        rowHref={mayWrite && (({ name }) => aside({ edit: name }))}
        actions={mayWrite && [{ label: 'Delete', run: remove }]}
        form={mayWrite && ((pool, onDone) => <PoolForm of={pool} onSaved={onDone} />)}
        empty={
          <Empty icon="limits" title="No pools yet" text="A pool prevents one busy queue from delaying the others." />
        }
      />
    </>
  );
}

const nameOf = ({ name }: QueuePool) => name;

function remove({ name }: QueuePool): Promise<boolean> {
  const text = 'Its queues and their jobs stay. Workers that fetch from the pool get no jobs.';
  const question = { title: `Delete the pool ${name}?`, text, action: 'Delete the pool', danger: true };
  return askAndAct(question, () => api.del(pathOf(name)), `${name} is deleted.`);
}

function columns(given: readonly QueueShare[]): Column<QueuePool>[] {
  const dispatched = (name: string) => given.reduce((sum, one) => sum + (one.pool === name ? one.dispatched : 0), 0);
  return [
    textColumn('name', 'Pool', ({ name }) => (
      <Link to={can('admin:write') ? aside({ edit: name }) : undefined} text={name} />
    )),
    column('strategy', 'Strategy', { under: (row) => STRATEGIES[row.strategy] }, ({ strategy }) => strategy),
    column('queues', 'Queues', ({ name: pool, strategy, queues, weights }) => (
      <span class="words">
        {queues.map((queue) => {
          const own = given.find((one) => one.pool === pool && one.name === queue);
          return (
            <span key={queue} title={own && `${number(own.dispatched)} jobs handed out`}>
              <QueueLink name={queue} />
              {strategy === 'weighted' && ` ×${Object.hasOwn(weights, queue) ? weights[queue] : 1}`}{' '}
              {own?.starved && <Badge look={['red', 'failures']} text="starved" />}
            </span>
          );
        })}
      </span>
    )),
    countColumn('workers', 'Workers', { sort: false }),
    countColumn('active_jobs', 'Running', { sort: false }, ({ active_jobs, concurrency }) => (
      <>
        <Count value={active_jobs} />
        {concurrency !== null && <span class="faint"> of {number(concurrency)}</span>}
      </>
    )),
    column('given', 'Given', { end: true }, ({ name }) => <Count value={dispatched(name)} />),
  ];
}

/** `mail: 3, reports` names two queues and a weight. */
function readQueues(text: string): { queues: string[]; weights: Record<string, number> } {
  const queues: string[] = [];
  const weights: Record<string, number> = {};
  for (const part of text.split(',')) {
    const [name = '', weight] = part.split(':').map((one) => one.trim());
    if (name === '') continue;
    queues.push(name);
    if (weight) Object.defineProperty(weights, name, { value: Number(weight), enumerable: true });
  }
  return { queues, weights };
}

function PoolForm({ of: before, onSaved }: { of: QueuePool | undefined; onSaved: () => void }) {
  const [strategy, setStrategy] = useState<string>(before?.strategy ?? 'round-robin');
  const isWeighted = strategy === 'weighted';
  const shown = before?.queues.map((queue) =>
    isWeighted ? `${queue}: ${Object.hasOwn(before.weights, queue) ? before.weights[queue] : 1}` : queue,
  );
  const save = async (form: FormData) => {
    const name = before?.name ?? textIn(form, 'name');
    const { queues, weights } = readQueues(String(form.get('queues')));
    const limit = textIn(form, 'concurrency');
    const concurrency = limit !== '' && { concurrency: Number(limit) };
    await api.put(pathOf(name), { strategy, queues, ...(isWeighted && { weights }), ...concurrency });
    return `${name} is saved.`;
  };
  return (
    <FormDialog
      title={before ? `Edit ${before.name}` : 'New pool'}
      action={before ? 'Save' : 'Create'}
      values={before}
      onSubmit={save}
      onDone={onSaved}
    >
      {!before && <TextField name="name" label="Name" required />}
      <SelectField
        label="Strategy"
        at={['strategy']}
        value={strategy}
        onChange={setStrategy}
        options={Object.fromEntries(Object.entries(STRATEGIES).map(([name, words]) => [name, `${name}: ${words}`]))}
      />
      <TextField
        name="queues"
        label="Queues"
        hint={isWeighted ? 'With weights: mail: 3, reports: 1' : 'Separated by commas: mail, reports'}
        at={['queues', 'weights']}
        value={shown?.join(', ')}
        required
      />
      <TextField
        name="concurrency"
        label="Maximum jobs running at once"
        hint="Empty: no limit."
        type="number"
        min="1"
      />
    </FormDialog>
  );
}
