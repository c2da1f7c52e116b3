"""Texts of many languages and kinds, to measure the estimate of tokens by."""

from __future__ import annotations

import base64
import hashlib
import uuid

# Written for this test; the formula was fitted to other texts.
SAMPLES = {
    "English, chat": (
        "My bike makes a clicking noise whenever I pedal hard uphill, but not on flat roads. I've already oiled the "
        "chain and tightened the pedals. Could it be the bottom bracket? If so, is that something I can fix at home, "
        "or should I take it to a shop? I'm fairly handy but I don't own any special tools, and I'd rather not spend "
        "more than fifty dollars on this."
    ),
    "English, report": (
        "The committee reviewed the proposal for consolidating the regional warehouses and concluded that the projected "
        "savings depend heavily on fuel prices, which have fluctuated considerably since the original assessment. A "
        "revised timetable, including contingency arrangements for the existing personnel, will be presented to the "
        "executive board in November. Environmental considerations were not evaluated separately."
    ),
    "German": (
        "Mein Fahrrad knackt jedes Mal, wenn ich bergauf kräftig in die Pedale trete, auf ebener Strecke aber nicht. "
        "Die Kette habe ich schon geölt und die Pedale nachgezogen. Könnte es das Tretlager sein, und lässt sich so "
        "etwas ohne Spezialwerkzeug zu Hause reparieren? Mehr als fünfzig Euro möchte ich eigentlich nicht ausgeben."
    ),
    "Dutch": (
        "Mijn fiets maakt een klikkend geluid als ik bergop hard trap, maar niet op een vlakke weg. Ik heb de ketting "
        "al gesmeerd en de pedalen aangedraaid. Kan het de trapas zijn, en kan ik dat thuis zelf maken zonder "
        "bijzonder gereedschap?"
    ),
    "Swedish": (
        "Min cykel knäpper varje gång jag trampar hårt i uppförsbacke, men inte på plan väg. Jag har redan smort "
        "kedjan och dragit åt pedalerna. Kan det vara vevlagret, och går det att laga hemma utan specialverktyg?"
    ),
    "French": (
        "Mon vélo fait un bruit de claquement dès que j'appuie fort sur les pédales en montée, mais pas sur le plat. "
        "J'ai déjà huilé la chaîne et resserré les pédales. Est-ce que cela pourrait venir du boîtier de pédalier, et "
        "peut-on le réparer chez soi sans outils particuliers ?"
    ),
    "Spanish": (
        "Mi bicicleta hace un chasquido cada vez que pedaleo con fuerza cuesta arriba, pero no en terreno llano. Ya "
        "engrasé la cadena y apreté los pedales. ¿Puede ser el eje del pedalier, y se puede arreglar en casa sin "
        "herramientas especiales? Preferiría no gastar más de cincuenta euros."
    ),
    "Portuguese": (
        "A minha bicicleta faz um estalido sempre que pedalo com força numa subida, mas não em estradas planas. Já "
        "lubrifiquei a corrente e apertei os pedais. Será o eixo pedaleiro, e dá para consertar em casa sem "
        "ferramentas especiais?"
    ),
    "Italian": (
        "La mia bicicletta fa uno schiocco ogni volta che pedalo forte in salita, ma non in pianura. Ho già oliato la "
        "catena e stretto i pedali. Potrebbe essere il movimento centrale, e si può riparare a casa senza attrezzi "
        "particolari?"
    ),
    "Polish": (
        "Mój rower wydaje trzask za każdym razem, gdy mocno pedałuję pod górę, ale nie na płaskiej drodze. "
        "Nasmarowałem już łańcuch i dokręciłem pedały. Czy to może być suport i czy da się to naprawić w domu bez "
        "specjalnych narzędzi?"
    ),
    "Czech": (
        "Moje kolo vydává praskavý zvuk pokaždé, když šlapu prudce do kopce, ale na rovině ne. Řetěz jsem už namazal a "
        "pedály dotáhl. Může to být středové složení a dá se to opravit doma bez zvláštního nářadí?"
    ),
    "Hungarian": (
        "A biciklim kattogó hangot ad, valahányszor erősen tekerek hegynek fel, sík úton viszont nem. A láncot már "
        "megolajoztam, a pedálokat is meghúztam. Lehet, hogy a középcsapágy az oka, és meg lehet ezt otthon javítani?"
    ),
    "Finnish": (
        "Pyöräni naksuu aina, kun poljen kovaa ylämäkeen, mutta ei tasaisella tiellä. Olen jo öljynnyt ketjun ja "
        "kiristänyt polkimet. Voisiko vika olla keskiössä, ja voiko sen korjata kotona ilman erikoistyökaluja?"
    ),
    "Turkish": (
        "Bisikletim yokuş yukarı sert pedal çevirdiğimde tıkırdıyor ama düz yolda ses çıkarmıyor. Zinciri yağladım, "
        "pedalları da sıktım. Sorun orta göbekte olabilir mi ve özel alet olmadan evde tamir edebilir miyim?"
    ),
    "Indonesian": (
        "Sepeda saya mengeluarkan bunyi klik setiap kali saya mengayuh kuat di tanjakan, tetapi tidak di jalan datar. "
        "Rantainya sudah saya beri minyak dan pedalnya sudah saya kencangkan. Apakah bisa diperbaiki sendiri di rumah?"
    ),
    "Vietnamese": (
        "Xe đạp của tôi kêu lách cách mỗi khi tôi đạp mạnh lên dốc, nhưng không kêu trên đường bằng. Tôi đã tra dầu "
        "vào xích và siết chặt bàn đạp. Có thể là do trục giữa không, và tôi có tự sửa ở nhà được không?"
    ),
    "Russian": (
        "Мой велосипед щёлкает каждый раз, когда я сильно кручу педали в гору, а на ровной дороге нет. Цепь я уже "
        "смазал и педали подтянул. Может быть, дело в каретке, и можно ли починить её дома без специальных "
        "инструментов?"
    ),
    "Ukrainian": (
        "Мій велосипед клацає щоразу, коли я сильно кручу педалі вгору, а на рівній дорозі ні. Ланцюг я вже змастив і "
        "педалі підтягнув. Чи може справа бути в каретці, і чи можна полагодити її вдома?"
    ),
    "Greek": (
        "Το ποδήλατό μου κάνει έναν κρότο κάθε φορά που πατάω δυνατά τα πεντάλ στην ανηφόρα, όχι όμως στον ίσιο δρόμο. "
        "Έχω ήδη λαδώσει την αλυσίδα. Μπορώ να το φτιάξω μόνος μου στο σπίτι;"
    ),
    "Arabic": (
        "تصدر دراجتي صوت طقطقة كلما ضغطت بقوة على الدواسات في الصعود، ولكن ليس على الطريق المستوي. لقد قمت بتزييت "
        "السلسلة وشد الدواسات. هل يمكن أن تكون المشكلة في المحور الأوسط، وهل أستطيع إصلاحها في البيت؟"
    ),
    "Hebrew": (
        "האופניים שלי משמיעים נקישה בכל פעם שאני מדווש חזק בעלייה, אבל לא בכביש ישר. כבר שימנתי את השרשרת והידקתי את "
        "הדוושות. האם ייתכן שהבעיה בציר המרכזי, ואפשר לתקן את זה בבית?"
    ),
    "Hindi": (
        "जब भी मैं चढ़ाई पर ज़ोर से पैडल मारता हूँ तो मेरी साइकिल से खट-खट की आवाज़ आती है, लेकिन समतल सड़क पर नहीं। मैंने चेन में तेल डाल दिया है "
        "और पैडल भी कस दिए हैं। क्या इसे घर पर ठीक किया जा सकता है?"
    ),
    "Thai": (
        "จักรยานของผมมีเสียงดังกริ๊กทุกครั้งที่ปั่นแรงๆ ขึ้นเนิน แต่ถ้าปั่นบนทางราบจะไม่มีเสียง ผมหยอดน้ำมันโซ่และขันบันไดให้แน่นแล้ว "
        "เป็นเพราะกะโหลกหรือเปล่า และผมซ่อมเองที่บ้านได้ไหม"
    ),
    "Chinese": (
        "我的自行车每次上坡用力蹬的时候都会发出咔嗒声，在平路上却没有。我已经给链条上了油，也拧紧了脚踏。会不会是中轴的问题？如果是的话，"
        "没有专用工具能在家里自己修吗？我不想花超过三百块钱。"
    ),
    "Japanese": (
        "上り坂で強くペダルを踏むと、自転車からカチカチという音がします。平らな道では鳴りません。チェーンに油をさして、ペダルも締め直しました。"
        "ボトムブラケットが原因でしょうか。特別な工具なしで家で直せますか。"
    ),
    "Korean": (
        "오르막길에서 페달을 세게 밟을 때마다 자전거에서 딸깍거리는 소리가 나는데 평지에서는 나지 않아요. 체인에 기름을 치고 페달도 조였어요. "
        "비비 문제일까요? 특별한 공구 없이 집에서 고칠 수 있나요?"
    ),
    "Python": '''from __future__ import annotations

class Inventory:
    """Counts what is on the shelves."""

    def __init__(self, shelves: dict[str, int] | None = None) -> None:
        self._shelves = dict(shelves or {})
        self.listeners: list[Callable[[str, int], None]] = []

    def take(self, name: str, amount: int = 1) -> int:
        left = self._shelves.get(name, 0) - amount
        if left < 0:
            raise ValueError(f"only {self._shelves.get(name, 0)} of {name!r} left, {amount} wanted")
        self._shelves[name] = left
        for listener in self.listeners:
            listener(name, left)
        return left
''',
    "TypeScript": """export async function fetchOrders(customerId: string, options: FetchOptions = {}): Promise<Order[]> {
  const response = await client.get(`/customers/${customerId}/orders`, { params: { limit: options.limit ?? 50 } });
  if (!response.ok) {
    throw new HttpError(response.status, await response.text());
  }
  return response.data.items.map((item) => ({ ...item, createdAt: new Date(item.created_at) }));
}
""",
    "SQL": """SELECT c.customer_id, c.name, COUNT(o.order_id) AS orders, SUM(o.total_amount) AS revenue
FROM customers AS c
LEFT JOIN orders AS o ON o.customer_id = c.customer_id AND o.created_at >= DATE '2025-01-01'
WHERE c.country IN ('DE', 'FR', 'PT') AND c.deleted_at IS NULL
GROUP BY c.customer_id, c.name
HAVING SUM(o.total_amount) > 1000
ORDER BY revenue DESC NULLS LAST
LIMIT 20;
""",
    "HTML": """<div class="card" id="product-4711">
  <img src="/static/img/kettle.jpg" alt="Electric kettle" width="320" height="240">
  <h2 class="card-title">Electric kettle, 1.7 l</h2>
  <p class="price"><span class="currency">EUR</span> <strong>39.90</strong></p>
  <a class="btn btn-primary" href="/cart/add?sku=4711&amp;qty=1">Add to cart</a>
</div>
""",
    "Markdown": """## Release checklist

- [ ] Update `CHANGELOG.md` and bump the version in `pyproject.toml`
- [x] Run the **full** test suite (`make test`)
- [ ] Tag the commit: `git tag -s v2.4.0`

| step | owner | days |
|---|---|---:|
| build | Mara | 1 |
| review | Jonas | 2 |
| announce | Priya | 1 |
""",
    "JSON, compact": (
        '{"order_id":"A-20931","customer":{"id":88213,"name":"Mara Lindqvist","email":"mara@example.org"},"items":'
        '[{"sku":"KTL-17","qty":1,"unit_price":39.9,"tags":["kitchen","electric"]},{"sku":"MUG-02","qty":4,'
        '"unit_price":7.25,"tags":[]}],"total":68.9,"paid":true,"shipped_at":null,"notes":"Leave with neighbour"}'
    ),
    "JSON, indented": """{
  "weather": {
    "location": "Porto, PT",
    "observed_at": "2026-03-14T09:30:00Z",
    "temperature_celsius": 14.6,
    "humidity": 0.81,
    "wind": {"speed_kmh": 22, "direction": "NW"},
    "forecast": [
      {"day": "Sunday", "low": 9, "high": 16, "rain_probability": 0.35},
      {"day": "Monday", "low": 8, "high": 15, "rain_probability": 0.6}
    ]
  }
}
""",
    "stack trace": """Traceback (most recent call last):
  File "/srv/app/worker.py", line 118, in run
    result = handler(payload["body"], retries=self.retries)
  File "/srv/app/handlers/email.py", line 42, in send_receipt
    smtp.sendmail(settings.SENDER, [recipient], message.as_string())
smtplib.SMTPRecipientsRefused: {'nobody@example.org': (550, b'5.1.1 User unknown')}
""",
    "log": """2026-02-11T08:15:02.381Z INFO  [http-nio-8080-exec-3] c.e.shop.CartController : cart 5f21 updated in 18 ms
2026-02-11T08:15:02.907Z WARN  [scheduler-1] c.e.shop.StockSync : 3 of 240 items skipped, retry at 08:20:00
2026-02-11T08:15:04.012Z ERROR [http-nio-8080-exec-7] c.e.shop.Payment : gateway timeout after 30000 ms, trace=9c0a77de
""",
    "CSV": """date,station,temperature,humidity,comment
2026-01-03,Oslo,-7.4,81,"light snow"
2026-01-03,Bergen,3.1,92,"heavy rain, wind"
2026-01-04,Oslo,-11.0,77,
2026-01-04,Tromso,-14.2,70,"clear, northern lights"
""",
    "web addresses": """https://www.example.com/catalog/kitchen/kettles?page=2&sort=price_asc&utm_source=newsletter
https://docs.example.org/en/latest/reference/configuration.html#environment-variables
https://cdn.example.net/assets/8f/3c/8f3c2b7e/main.min.js?v=20260114
""",
    "UUIDs": "".join(f"{uuid.uuid5(uuid.NAMESPACE_URL, str(number))}\\n" for number in range(8)),
    "base64": base64.b64encode(hashlib.shake_256(b"firefly").digest(450)).decode(),
    "chat with emoji": (
        "omg yes!! 🎉🎉 can't wait for saturday 😍 I'll bring the cake 🍰 and Leo brings his guitar 🎸 pls tell Ana she "
        "still owes me a coffee ☕😂 see you at 7 👋❤️"
    ),
}
