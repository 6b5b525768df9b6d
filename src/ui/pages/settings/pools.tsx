/** Pools: queues from which workers take in turn, each its portion. */
import { useState } from 'preact/hooks';
import type { PoolList, PoolStrategy, QueuePool, QueueShare, SchedulingStats } from '../../../contract/pools';
import { Badge } from '../../components/badge';
import { errorAt, Field, Form, textIn } from '../../components/form';
import { Dialog } from '../../components/overlays';
import { Empty, Loaded } from '../../components/state';
import { actionsColumn, type Column, DataTable } from '../../components/table';
import { Count, QueueLink } from '../../components/text';
import { api } from '../../core/api';
import { aside, openAside } from '../../core/aside';
import { segment } from '../../core/base';
import { act, confirm, toast } from '../../core/dialogs';
import { number } from '../../core/format';
import { useResource } from '../../core/resource';
import { query } from '../../core/router';
import { can } from '../../core/session';

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
  const remove = async ({ name }: QueuePool) => {
    const sure = await confirm({
      title: `Delete the pool ${name}?`,
      text: 'Its queues and their jobs stay. Workers that fetch from the pool get no jobs.',
      action: 'Delete the pool',
      danger: true,
    });
    if (sure && (await act(() => api.del(pathOf(name)), `${name} is deleted.`))) pools.reload();
  };
  return (
    <>
      <div class="bar">
        <p class="faint">
          A worker fetches from <code>pool:NAME</code>, and gets jobs of its queues in turn.
        </p>
        {mayWrite && (
          <button type="button" class="primary" onClick={() => openAside({ edit: ':new' })}>
            New pool
          </button>
        )}
      </div>
      <Loaded of={pools}>
        {({ items, given }) => (
          <DataTable
            label="Pools"
            rows={items}
            columns={columns(given, remove)}
            rowKey={({ name }) => name}
            {...(mayWrite && { rowHref: ({ name }: QueuePool) => aside({ edit: name }) })}
            empty={
              <Empty icon="limits" title="No pools yet">
                A pool prevents one busy queue from delaying the others.
              </Empty>
            }
          />
        )}
      </Loaded>
      {mayWrite && query('edit') && pools.data && (
        <PoolForm of={pools.data.items.find(({ name }) => name === query('edit'))} onSaved={pools.reload} />
      )}
    </>
  );
}

function columns(given: readonly QueueShare[], remove: (pool: QueuePool) => void): Column<QueuePool>[] {
  return [
    {
      id: 'name',
      label: 'Pool',
      sort: ({ name }) => name,
      render: ({ name }) => (can('admin:write') ? <a href={aside({ edit: name })}>{name}</a> : name),
    },
    {
      id: 'strategy',
      label: 'Strategy',
      render: ({ strategy }) => (
        <>
          {strategy}
          <small class="under">{STRATEGIES[strategy]}</small>
        </>
      ),
    },
    {
      id: 'queues',
      label: 'Queues',
      render: ({ name: pool, strategy, queues, weights }) => (
        <span class="words">
          {queues.map((queue) => {
            const own = given.find((one) => one.pool === pool && one.name === queue);
            return (
              <span key={queue} title={own && `${number(own.dispatched)} jobs handed out`}>
                <QueueLink name={queue} />
                {strategy === 'weighted' && ` ×${Object.hasOwn(weights, queue) ? weights[queue] : 1}`}{' '}
                {own?.starved && (
                  <Badge tone="red" icon="failures">
                    starved
                  </Badge>
                )}
              </span>
            );
          })}
        </span>
      ),
    },
    { id: 'workers', label: 'Workers', end: true, render: ({ workers }) => <Count value={workers} /> },
    {
      id: 'active',
      label: 'Running',
      end: true,
      render: ({ active_jobs, concurrency }) => (
        <>
          <Count value={active_jobs} />
          {concurrency !== null && <span class="faint"> of {number(concurrency)}</span>}
        </>
      ),
    },
    {
      id: 'given',
      label: 'Given',
      end: true,
      render: ({ name }) => (
        <Count value={given.reduce((sum, one) => sum + (one.pool === name ? one.dispatched : 0), 0)} />
      ),
    },
    ...actionsColumn(can('admin:write'), (row: QueuePool) => (
      <button type="button" class="small" aria-label={`Delete ${row.name}`} onClick={() => remove(row)}>
        Delete
      </button>
    )),
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
  const close = () => openAside({ edit: null });
  const isWeighted = strategy === 'weighted';
  const shown = before?.queues.map((queue) =>
    isWeighted ? `${queue}: ${Object.hasOwn(before.weights, queue) ? before.weights[queue] : 1}` : queue,
  );
  return (
    <Dialog title={before ? `Edit ${before.name}` : 'New pool'} onClose={close}>
      <Form
        action={before ? 'Save' : 'Create'}
        onCancel={close}
        onSubmit={async (form) => {
          const name = before?.name ?? textIn(form, 'name');
          const { queues, weights } = readQueues(String(form.get('queues')));
          const limit = textIn(form, 'concurrency');
          await api.put(pathOf(name), {
            strategy,
            queues,
            ...(isWeighted && { weights }),
            ...(limit !== '' && { concurrency: Number(limit) }),
          });
          toast(`${name} is saved.`);
          onSaved();
          close();
        }}
      >
        {(error) => (
          <>
            {!before && (
              <Field label="Name" error={errorAt(error, 'name')}>
                <input name="name" required autocomplete="off" spellcheck={false} />
              </Field>
            )}
            <Field label="Strategy" error={errorAt(error, 'strategy')}>
              <select value={strategy} onChange={({ currentTarget }) => setStrategy(currentTarget.value)}>
                {Object.entries(STRATEGIES).map(([option, words]) => (
                  <option key={option} value={option}>
                    {option}: {words}
                  </option>
                ))}
              </select>
            </Field>
            <Field
              label="Queues"
              hint={isWeighted ? 'With weights: mail: 3, reports: 1' : 'Separated by commas: mail, reports'}
              error={errorAt(error, 'queues', 'weights')}
            >
              <input
                name="queues"
                required
                defaultValue={shown?.join(', ') ?? ''}
                autocomplete="off"
                spellcheck={false}
              />
            </Field>
            <Field label="Maximum jobs running at once" hint="Empty: no limit." error={errorAt(error, 'concurrency')}>
              <input name="concurrency" type="number" min="1" defaultValue={before?.concurrency ?? ''} />
            </Field>
          </>
        )}
      </Form>
    </Dialog>
  );
}
