/** Keys that limit jobs: how much of each is used, who waits, and limits that operators put in their place. */
import { FilterBar } from '../../components/list';
import { PageHead } from '../../components/page';
import { LimitKeys } from './keys';

export default function LimitsPage() {
  return (
    <>
      <PageHead title="Limits" sub="Limit keys of all queues" />
      <FilterBar of={[{ name: 'key', label: 'Filter by key', chip: 'Key' }]} />
      <LimitKeys />
    </>
  );
}
