export type Phrases = {
  readonly language: string;
  readonly greetings: readonly string[];
  /** By index in `TOPICS`. */
  readonly openers: readonly (readonly string[])[];
  readonly answers: readonly string[];
  readonly replies: readonly string[];
  readonly agents: readonly string[];
  readonly thanks: readonly string[];
  readonly fillers: readonly string[];
};

export type Topic = { readonly name: string; readonly intents: readonly string[]; readonly article: string };

export const TOPICS: readonly Topic[] = [
  {
    name: "Order status",
    intents: ["Where is my order", "Change delivery address"],
    article: "Track a parcel",
  },
  {
    name: "Returns and refunds",
    intents: ["Start a return", "Refund not received"],
    article: "How refunds work",
  },
  { name: "Account access", intents: ["Reset password"], article: "Sign in without a password" },
  {
    name: "Billing",
    intents: ["Unknown charge", "Change plan", "Request invoice"],
    article: "Read your invoice",
  },
  { name: "Damaged goods", intents: ["Report damage"], article: "Report a damaged delivery" },
  { name: "Appointments", intents: [], article: "Move or cancel a visit" },
];

export const PHRASES: readonly Phrases[] = [
  {
    language: "en",
    greetings: [
      "Hi, I am Mira, the virtual assistant. How can I help?",
      "Hello {name}! What brings you here today?",
    ],
    openers: [
      [
        "Where is my order {order}? It should have been here on {day}.",
        "The tracking for {order} has not moved since {day}.",
      ],
      [
        "I sent the {product} back on {day} and still have no refund of {amount}.",
        "How do I return the {product} from order {order}?",
      ],
      [
        "I can't log in any more, the reset mail never arrives at {mail}.",
        "My account is locked and I have a {product} waiting in the basket.",
      ],
      [
        "There is a charge of {amount} on my card that I do not know.",
        "Please send me the invoice for {order}, made out to {name}.",
      ],
      [
        "The {product} arrived broken, the box was open.",
        "One of the parts of my {product} is cracked. Order {order}.",
      ],
      [
        "Can I move the visit on {day} to the morning?",
        "The technician for the {product} did not come on {day}.",
      ],
    ],
    answers: [
      "I'm sorry about that, {name}. Let me look up {order} for you.",
      "Thanks. I can see the {product} in our system. It left the warehouse on {day}.",
      "The refund of {amount} takes three to five working days after we have the parcel.",
      "I have sent a new link to {mail}. It is valid for one hour.",
      "Could you tell me the postcode of the delivery address, please?",
      "I found an article that answers this. Did it solve your problem?",
    ],
    replies: [
      "yes please",
      "No, that's not it.",
      "ok, and how long will that take?",
      "The number is {order}.",
      "I already tried that twice.",
      "Can I talk to a person?",
    ],
    agents: [
      "Hi {name}, this is Sam from support. I have read the chat and will take it from here.",
      "I have credited {amount} to your account, you will see it by {day}.",
    ],
    thanks: [
      "Great, thank you!",
      "Thanks for nothing.",
      "perfect, bye",
      "Thank you so much, that was quick.",
    ],
    fillers: [
      "I have been a customer for years and this has never happened before.",
      "Last time a colleague of yours told me something else.",
      "I checked the mailbox, the spam folder and asked the neighbours.",
    ],
  },
  {
    language: "de",
    greetings: ["Guten Tag, ich bin Mira. Wie kann ich helfen?", "Hallo {name}, schön, dass Sie da sind!"],
    openers: [
      [
        "Wo bleibt meine Bestellung {order}? Sie sollte am {day} kommen.",
        "Die Sendung {order} hängt seit {day} fest.",
      ],
      [
        "Ich habe {product} am {day} zurückgeschickt, aber die {amount} sind noch nicht da.",
        "Wie kann ich {product} zurückgeben?",
      ],
      ["Ich komme nicht mehr in mein Konto, an {mail} kommt keine E-Mail an.", "Mein Zugang ist gesperrt."],
      [
        "Auf meiner Karte steht eine Buchung über {amount}, die ich nicht kenne.",
        "Bitte schicken Sie mir die Rechnung zu {order}.",
      ],
      [
        "{product} ist beschädigt angekommen, der Karton war offen.",
        "An {product} fehlt ein Teil, Bestellung {order}.",
      ],
      ["Kann ich den Termin am {day} verschieben?", "Am {day} ist niemand gekommen."],
    ],
    answers: [
      "Das tut mir leid, {name}. Ich sehe mir {order} gleich an.",
      "Die Erstattung über {amount} dauert drei bis fünf Werktage.",
      "Ich habe einen neuen Link an {mail} geschickt.",
      "Können Sie mir bitte die Postleitzahl nennen?",
    ],
    replies: [
      "ja bitte",
      "Nein, das war es nicht.",
      "Die Nummer ist {order}.",
      "Kann ich bitte mit einem Menschen sprechen?",
    ],
    agents: [
      "Guten Tag {name}, hier ist Jörg aus dem Kundendienst. Ich übernehme.",
      "Ich habe Ihnen {amount} gutgeschrieben, größere Beträge dauern länger.",
    ],
    thanks: ["Vielen Dank!", "Danke, tschüss", "Na endlich."],
    fillers: [
      "Ich bin seit Jahren Kunde und das ist noch nie passiert.",
      "Ihr Kollege sagte mir etwas anderes.",
      "Im Spam-Ordner ist auch nichts.",
    ],
  },
  {
    language: "fr",
    greetings: ["Bonjour, je suis Mira. Comment puis-je vous aider ?", "Bonjour {name} !"],
    openers: [
      [
        "Où est ma commande {order} ? Elle devait arriver le {day}.",
        "Le suivi de {order} n’a pas bougé depuis le {day}.",
      ],
      ["J’ai renvoyé {product} le {day} et je n’ai pas reçu les {amount}.", "Comment retourner {product} ?"],
      ["Impossible de me connecter, rien n’arrive à {mail}.", "Mon compte est bloqué."],
      ["Il y a un débit de {amount} que je ne connais pas.", "Pouvez-vous m’envoyer la facture de {order} ?"],
      ["{product} est arrivé cassé, le carton était ouvert.", "Il manque une pièce à {product}."],
      ["Puis-je déplacer le rendez-vous du {day} ?", "Personne n’est venu le {day}."],
    ],
    answers: [
      "Je suis désolée, {name}. Je regarde {order}.",
      "Le remboursement de {amount} prend trois à cinq jours ouvrés.",
      "J’ai envoyé un nouveau lien à {mail}.",
      "Pouvez-vous m’indiquer le code postal ?",
    ],
    replies: [
      "oui s’il vous plaît",
      "Non, ce n’est pas ça.",
      "Le numéro est {order}.",
      "Je voudrais parler à quelqu’un.",
    ],
    agents: [
      "Bonjour {name}, ici Chloé du service client. Je prends le relais.",
      "J’ai crédité {amount} sur votre compte.",
    ],
    thanks: ["Merci beaucoup !", "Parfait, merci", "Ça a pris du temps…"],
    fillers: [
      "Je suis client depuis des années et cela n’est jamais arrivé.",
      "Votre collègue m’a dit autre chose.",
      "J’ai déjà vérifié les indésirables.",
    ],
  },
  {
    language: "es",
    greetings: ["Hola, soy Mira. ¿En qué puedo ayudarte?", "¡Hola, {name}!"],
    openers: [
      [
        "¿Dónde está mi pedido {order}? Tenía que llegar el {day}.",
        "El seguimiento de {order} no cambia desde el {day}.",
      ],
      ["Devolví {product} el {day} y aún no tengo los {amount}.", "¿Cómo devuelvo {product}?"],
      ["No puedo entrar, no llega nada a {mail}.", "Mi cuenta está bloqueada."],
      ["Hay un cargo de {amount} que no conozco.", "¿Me envían la factura de {order}?"],
      ["{product} llegó roto, la caja estaba abierta.", "A {product} le falta una pieza."],
      ["¿Puedo cambiar la cita del {day}?", "El {day} no vino nadie."],
    ],
    answers: [
      "Lo siento, {name}. Voy a revisar {order}.",
      "El reembolso de {amount} tarda de tres a cinco días.",
      "He enviado un enlace nuevo a {mail}.",
      "¿Me dices el código postal, por favor?",
    ],
    replies: ["sí, por favor", "No, no es eso.", "El número es {order}.", "¿Puedo hablar con una persona?"],
    agents: ["Hola {name}, soy Íñigo, de atención al cliente. Sigo yo.", "Te he abonado {amount}."],
    thanks: ["¡Muchas gracias!", "vale, gracias", "Por fin."],
    fillers: [
      "Soy cliente desde hace años y nunca me había pasado.",
      "Tu compañera me dijo otra cosa.",
      "Ya miré en el correo no deseado.",
    ],
  },
  {
    language: "pt-BR",
    greetings: ["Olá, eu sou a Mira. Como posso ajudar?", "Oi {name}, tudo bem?"],
    openers: [
      ["Cadê o meu pedido {order}? Era para chegar em {day}.", "O rastreio de {order} parou em {day}."],
      ["Devolvi {product} em {day} e não recebi os {amount}.", "Como devolvo {product}?"],
      ["Não consigo entrar, nada chega em {mail}.", "Minha conta foi bloqueada."],
      ["Tem uma cobrança de {amount} que eu não conheço.", "Podem mandar a nota fiscal de {order}?"],
      ["{product} chegou quebrado, a caixa estava aberta.", "Falta uma peça em {product}."],
      ["Posso mudar a visita de {day}?", "Ninguém veio em {day}."],
    ],
    answers: [
      "Sinto muito, {name}. Vou olhar {order}.",
      "O reembolso de {amount} leva de três a cinco dias úteis.",
      "Enviei um novo link para {mail}.",
      "Qual é o CEP de entrega, por favor?",
    ],
    replies: ["sim, por favor", "Não é isso.", "O número é {order}.", "Quero falar com um atendente."],
    agents: ["Oi {name}, aqui é o João do suporte. Vou continuar daqui.", "Creditei {amount} na sua conta."],
    thanks: ["Muito obrigada!", "valeu", "Até que enfim."],
    fillers: [
      "Sou cliente há anos e isso nunca aconteceu.",
      "A sua colega me disse outra coisa.",
      "Já olhei o lixo eletrônico.",
    ],
  },
  {
    language: "ja",
    greetings: ["こんにちは、ミラです。ご用件をどうぞ。", "{name} 様、いらっしゃいませ。"],
    openers: [
      [
        "注文 {order} はどこですか。{day} に届く予定でした。",
        "{order} の配送状況が {day} から変わりません。",
      ],
      [
        "{product} を {day} に返品しましたが、{amount} がまだ返金されていません。",
        "{product} を返品したいです。",
      ],
      ["ログインできません。{mail} にメールが届きません。", "アカウントがロックされました。"],
      ["{amount} の請求に覚えがありません。", "{order} の請求書を送ってください。"],
      ["{product} が壊れて届きました。", "{product} の部品が足りません。"],
      ["{day} の予約を変更できますか。", "{day} に誰も来ませんでした。"],
    ],
    answers: [
      "申し訳ございません。{order} を確認いたします。",
      "{amount} の返金には三〜五営業日かかります。",
      "{mail} に新しいリンクをお送りしました。",
      "郵便番号を教えていただけますか。",
    ],
    replies: ["はい、お願いします", "いいえ、違います。", "番号は {order} です。", "担当者と話せますか。"],
    agents: [
      "{name} 様、サポートの佐藤です。ここからは私が担当いたします。",
      "{amount} を返金いたしました。",
    ],
    thanks: ["ありがとうございます!", "助かりました。", "やっとですね…"],
    fillers: [
      "長年利用していますが、こんなことは初めてです。",
      "前回は違う説明を受けました。",
      "迷惑メールも確認しました。",
    ],
  },
];

export const FIRST_NAMES = [
  "Ada",
  "Björn",
  "Chloé",
  "Deepika",
  "Emre",
  "Fatima",
  "Grégoire",
  "Hana",
  "Iñaki",
  "João",
  "Kwame",
  "Łukasz",
  "Mei",
  "Nadia",
  "O'Brien",
  "Zoë",
];
export const LAST_NAMES = [
  "Almeida",
  "Bauer",
  "Chen",
  "D'Angelo",
  "Eriksson",
  "Haddad",
  "Ito",
  "Kowalski",
  "Le Gall",
  "Müller",
  "Nguyễn",
  "Okafor",
  "Patel",
  "Şahin",
  "Smith-Jones",
  "Иванова",
];
export const PRODUCTS = [
  "coffee grinder",
  '"Aurora" desk lamp',
  "trail running shoes",
  "espresso machine X2",
  "rain jacket (M)",
  '4K monitor 27"',
  "noise-cancelling headphones",
  "garden hose 25 m",
  "board game: Café & Co.",
  "smart thermostat",
];

/** They break careless parsers. */
export const NONSTANDARD_ENDINGS = [
  " 😀👍🏽👨‍👩‍👧‍👦",
  "\nSecond line\r\nthird line\tafter a tab",
  ' He said "no" and \\ left // 100%',
  ' {"data":{"x":1},"specversion":"1.0"}',
  " <b>bold</b> &amp; <script>alert('x')</script>",
  " مرحبا بالعالم ‏(RTL)",
  " नमस्ते, हिन्दी में भी",
  " \u2028line separator\u2029paragraph\u0085next line",
  " \u0001\u001f control",
  " e\u0301 combining, \u{1F3F4}\u{E0067}\u{E0062}\u{E007F} tags",
  " ',\"]}[{ \\u0041 \\n",
  " __exception__ 12",
];
