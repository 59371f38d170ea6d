import random
from dataclasses import dataclass, field


@dataclass
class Room:
    name: str
    exits: list = field(default_factory=list)
    loot: int = 0
    monster: str | None = None


@dataclass
class Hero:
    hp: int = 20
    gold: int = 0
    log: list = field(default_factory=list)


MONSTERS = {"rat": (2, 4), "goblin": (4, 8), "ogre": (7, 14)}
NAMES = ["hall", "cellar", "crypt", "tower", "kitchen", "garden", "library", "vault"]


def build():
    rooms = {n: Room(n, loot=random.randint(0, 9)) for n in NAMES}
    for a, b in zip(NAMES, NAMES[1:]):
        rooms[a].exits.append(b)
        rooms[b].exits.append(a)
    for _ in range(3):
        a, b = random.sample(NAMES, 2)
        if b not in rooms[a].exits:
            rooms[a].exits.append(b)
    for r in rooms.values():
        r.monster = random.choice([*MONSTERS, None, None, None])
    return rooms


def play(rooms, hero, start="hall", turns=15):
    here = rooms[start]
    for t in range(turns):
        if here.monster:
            dmg, _ = MONSTERS[here.monster]
            hit = random.randint(0, dmg)
            hero.hp -= hit
            hero.log.append(f"{t:>2} {here.name}: {here.monster} hits for {hit} (hp {hero.hp})")
            if hero.hp <= 0:
                hero.log.append("   the hero dies")
                return
            if random.random() < .6:
                here.monster = None
        hero.gold += here.loot
        here.loot = 0
        here = rooms[random.choice(here.exits)]
    hero.log.append(f"   the hero leaves with {hero.gold} gold")


h = Hero()
play(build(), h)
print("\n".join(h.log))
h.gold, h.hp
