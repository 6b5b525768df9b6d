/** Keys that limit jobs: how much of each is used, who waits, and limits that operators put in their place. */
import { FilterChips, Filters, TextFilter } from '../../components/list';
import { PageHead } from '../../components/page';
import { LimitKeys } from './keys';

export default function LimitsPage() {
  return (
    <>
      <PageHead title="Limits" sub="Limit keys of all queues" />
      <Filters>
        <TextFilter name="key" label="Filter by key" />
      </Filters>
      <FilterChips names={{ key: 'Key' }} />
      <LimitKeys />
    </>
  );
}
