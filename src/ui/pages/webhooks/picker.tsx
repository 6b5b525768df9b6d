/** Chooses events: single ones, or all of a kind. */
import { Boxes } from '../../components/form';
import { EVENT_KINDS } from '../../core/event-names';

export function Picker(props: { chosen: readonly string[]; onChange: (chosen: readonly string[]) => void }) {
  const { chosen, onChange } = props;
  const toggle = (name: string, on: boolean) => {
    // All of a kind takes the place of its single ones.
    const kept = chosen.filter((one) => one !== name && !(name.endsWith('.*') && one.startsWith(name.slice(0, -1))));
    onChange(on ? [...kept, name] : kept);
  };
  return (
    <Boxes legend="Events" at={['events']} class="picker">
      {[...EVENT_KINDS].map(([kind, types]) => {
        const all = chosen.includes('*') || chosen.includes(`${kind}.*`);
        return (
          <div key={kind}>
            <label class="all">
              <input
                type="checkbox"
                checked={all}
                disabled={chosen.includes('*')}
                onChange={({ currentTarget }) => toggle(`${kind}.*`, currentTarget.checked)}
              />
              <code>{kind}.*</code>
            </label>
            <span>
              {types.map((type) => (
                <label key={type}>
                  <input
                    type="checkbox"
                    checked={all || chosen.includes(type)}
                    disabled={all}
                    onChange={({ currentTarget }) => toggle(type, currentTarget.checked)}
                  />
                  <code>{type.slice(kind.length + 1)}</code>
                </label>
              ))}
            </span>
          </div>
        );
      })}
      <label class="all">
        <input
          type="checkbox"
          checked={chosen.includes('*')}
          onChange={({ currentTarget }) => onChange(currentTarget.checked ? ['*'] : [])}
        />
        all events
      </label>
    </Boxes>
  );
}
