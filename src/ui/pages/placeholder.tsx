/** Stands where a page is going to be. */
import type { IconName } from '../components/icon';
import { PageHead } from '../components/page';
import { Empty } from '../components/state';

export function Placeholder({ title, icon }: { title: string; icon: IconName }) {
  return (
    <>
      <PageHead title={title} />
      <Empty icon={icon} title="This page is not here yet">
        The HTTP API and the command <code>npx tocsin</code> show the same.
      </Empty>
    </>
  );
}
